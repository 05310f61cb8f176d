-- Purpose: settle a hold: move run, day, month and tracked USD of the hold's own periods by the difference between the
--   real cost and the estimate, and remove the hold. A hold that the reaper already kept is corrected in the same way.
-- KEYS: as hold.rs names them
-- ARGV: as settle.rs names them; `outcome` is 'settled' | 'released' | 'estimated'. A kept hold whose cost is known now
--   is 'corrected'. `measured` is a word of shared/domain/src/measured.rs, or empty. `as_of` has generation and version
--   of the account when the hold was opened, or is empty. `extension` is another estimate that is right as well, that
--   of an extension whose reply was lost, or empty. `ended_by` is who settles if it is not the hold's edge, a word of
--   shared/domain/src/entry/ended_by.rs, or empty. The last three are left out if all are empty
-- Returns: 'settled' | 'missing' (no such hold; nothing changed) | 'mismatch' (the hold has neither estimate; nothing
--   changed) | 'lost_writes' (no such hold, and the account's version is below `as_of`; nothing changed)
-- Cost: O(log open holds); 11 calls, 10 in an unnamed run, one more where its agent held less, two more where its run
--   has no record; 2 calls where there is no hold, and one more to say why
local hold_text = call('GET', KEYS.hold)
local is_open = hold_text
if not is_open then hold_text = call('GET', KEYS.kept_hold) end
if hold_text == 'V' then return 'missing' end
if not hold_text then
  --@ lost_writes.lua
  local generation, version = string.match(ARGV.as_of or '', '^(%d+) (%d+)$')
  return generation and lost_writes(generation, version) and 'lost_writes' or 'missing'
end

local estimate_text, day_text, month_text, named_text = string.match(hold_text, '^H (%d+) (%d+) (%d+) ([01]) ')
if estimate_text ~= ARGV.estimate and estimate_text ~= (ARGV.extension or '') then return 'mismatch' end
local outcome_text, cost_text = ARGV.outcome, ARGV.cost
local measured_text, ended_by_text = ARGV.measured, ARGV.ended_by or ''
-- The hold is removed first. If the script aborts because a key of the account has the wrong type, its writes are not
-- undone: a retry then finds no hold, and the amounts that were not moved stay charged.
if is_open then
  call('DEL', KEYS.hold)
  call('ZREM', KEYS.due, ARGV.allow_id)
else
  call('DEL', KEYS.kept_hold)
  call('ZREM', KEYS.kept_index, ARGV.allow_id)
  if outcome_text ~= 'estimated' then
    outcome_text = 'corrected'
  end
end
--@ end_hold.lua
return 'settled'
