-- Purpose: ensure that an authorize whose reply was lost never charges, whether it ran, runs later or never arrives:
--   give back the charge (even if the reaper kept the hold meanwhile), the plan's slot and the run if nothing else uses
--   them, and leave a tombstone that refuses the id.
-- KEYS: as void.rs names them
-- ARGV: as void.rs names them; generation and version are those of the account that were known before the authorize
-- Returns: {'refunded'} | {'voided'}
--   | {'lost_writes'} (no hold, and the account's version is below the given one; nothing changed)
-- Cost: O(log open holds + log runs of the account); 4 to 27 calls
local hold_text = call('GET', KEYS.hold)
local is_open = hold_text
if not is_open then hold_text = call('GET', KEYS.kept_hold) end
if not hold_text then
  --@ lost_writes.lua
  if lost_writes(ARGV.generation, ARGV.version) then return {'lost_writes'} end
end
call('SET', KEYS.hold, 'V', 'PX', ARGV.tombstone_life)
if not hold_text or hold_text == 'V' then return {'voided'} end
local estimate_text, day_text, month_text, named_text = string.match(hold_text, '^H (%d+) (%d+) (%d+) ([01]) ')
local outcome_text, cost_text, measured_text, ended_by_text = 'voided', '0', '', ''
call('ZREM', KEYS.due, ARGV.allow_id)
call('DEL', KEYS.kept_hold)
call('ZREM', KEYS.kept_index, ARGV.allow_id)
--@ end_hold.lua
-- Removes the run and the agent's slot with the last call that used them, since the caller received a denial.
if has_run and call('HINCRBY', KEYS.run, 'calls', -1) == 0 then
  local run = call('HMGET', KEYS.run, 'called', 'denied', 'status')
  if run[1] and not run[2] and not run[3] then
    call('DEL', KEYS.run)
    call('ZREM', KEYS.agent_runs, ARGV.run)
    call('ZREM', KEYS.account_runs, string.match(KEYS.run, '/run/(.+)$'))
  end
end
local slot_field = 's' .. month_text
local slot = call('HGET', KEYS.agent, slot_field)
local users_text = slot and string.match(slot, '^c(%d+)$')
if not users_text then return {'refunded'} end
if users_text ~= '1' then
  call('HSET', KEYS.agent, slot_field, format('c%d', users_text - 1))
else
  call('HDEL', KEYS.agent, slot_field)
  call('HINCRBY', KEYS.account, 'n' .. month_text, -1)
end
return {'refunded'}
