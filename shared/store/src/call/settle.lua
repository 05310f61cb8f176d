-- Purpose: resolve a hold: move run, day, month and tracked USD of the hold's own periods by the difference between the
--   real cost and the estimate, and forget the hold. A hold that was already kept by the reaper is corrected the same way.
-- KEYS: 1 account record  2 agent  3 run  4 hold  5 due  6 kept index  7 kept hold  8 audit log
-- ARGV: 1 allow id  2 estimate nanos  3 cost nanos  4 how it ends: 'settled' | 'released' | 'estimated'. A kept hold whose
--   cost is known now is 'corrected'
--   5, 6 generation and version of the account when the hold was opened, where it matters why there is none
-- Returns: 'settled' | 'missing' (nothing to move, nothing moved) | 'mismatch' (not this estimate)
--   | 'lacks_writes' (there is no hold, and the account has not come as far as when it was opened)
-- Cost: O(log open holds); 11 calls, 10 in an unnamed run, one more where its agent held less, two more where its run has
--   no record; 2 calls where there is no hold, and one more to say why
local value_text = call('GET', KEYS[4])
local kept = not value_text and call('GET', KEYS[7])
if value_text == 'V' then return 'missing' end
if not (value_text or kept) then
  --@ lacks_writes.lua
  return ARGV[5] and lacks_writes(ARGV[5], ARGV[6]) and 'lacks_writes' or 'missing'
end

if string.match(value_text or kept, '^H (%d+) ') ~= ARGV[2] then return 'mismatch' end
-- The hold goes first. A script that breaks off, since something in the account is not of the kind that it should be, is
-- not undone: whoever tries again then finds nothing to move, and what was not moved stays charged.
if kept then
  call('DEL', KEYS[7])
  call('ZREM', KEYS[6], ARGV[1])
  resolve(kept, false, ARGV[4] == 'estimated' and ARGV[4] or 'corrected', ARGV[3])
else
  call('DEL', KEYS[4])
  call('ZREM', KEYS[5], ARGV[1])
  resolve(value_text, true, ARGV[4], ARGV[3])
end
return 'settled'
