-- Purpose: make sure that an authorize whose answer was lost never charges, whether it ran, runs later or never arrives:
--   give back what it charged (also when the reaper kept it meanwhile), and leave a tombstone that refuses it.
-- KEYS: 1 account record  2 agent  3 run  4 hold  5 due  6 kept index  7 kept hold  8 audit log
-- ARGV: 1 allow id  2 life of the tombstone ms  3, 4 generation and version of the account that were known before the authorize
-- Returns: {'refunded'} | {'voided'}
--   | {'lacks_writes'} (there is no hold, and the account has not come as far: nothing is written)
-- Cost: O(log open holds); 4 to 19 calls
local value, open = call('GET', KEYS[4]), true
if not value then value, open = call('GET', KEYS[7]), false end
if not value and ARGV[3] then
  --@ lacks_writes.lua
  if lacks_writes(ARGV[3], ARGV[4]) then return {'lacks_writes'} end
end
call('SET', KEYS[4], 'V', 'PX', ARGV[2])
if not value or value == 'V' then return {'voided'} end
call('ZREM', KEYS[5], ARGV[1])
call('DEL', KEYS[7])
call('ZREM', KEYS[6], ARGV[1])
local run_known = resolve(value, open, 'voided', '0')
if run_known then call('HINCRBY', KEYS[3], 'calls', -1) end
return {'refunded'}
