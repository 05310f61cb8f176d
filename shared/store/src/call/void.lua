-- Purpose: ensure that an authorize whose reply was lost never charges, whether it ran, runs later or never arrives:
--   give back the charge (even if the reaper kept the hold meanwhile), and leave a tombstone that refuses the id.
-- KEYS: as hold.rs names them
-- ARGV: as void.rs names them; generation and version are those of the account that were known before the authorize
-- Returns: {'refunded'} | {'voided'}
--   | {'lacks_writes'} (no hold, and the account is older: nothing is written)
-- Cost: O(log open holds); 4 to 19 calls
local value, open = call('GET', KEYS.hold), true
if not value then value, open = call('GET', KEYS.kept_hold), false end
if not value then
  --@ lacks_writes.lua
  if lacks_writes(ARGV.generation, ARGV.version) then return {'lacks_writes'} end
end
call('SET', KEYS.hold, 'V', 'PX', ARGV.tombstone_life)
if not value or value == 'V' then return {'voided'} end
call('ZREM', KEYS.due, ARGV.allow_id)
call('DEL', KEYS.kept_hold)
call('ZREM', KEYS.kept_index, ARGV.allow_id)
local run_known = end_hold(value, open, 'voided', '0', '', '')
if run_known then call('HINCRBY', KEYS.run, 'calls', -1) end
return {'refunded'}
