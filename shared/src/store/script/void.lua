-- Purpose: make sure that an authorize whose answer was lost never charges, whether it ran, runs later or never arrives:
--   give back what it charged (also when the reaper kept it meanwhile), and leave a tombstone that refuses it.
-- KEYS: 1 account record  2 agent  3 run  4 hold  5 due  6 kept index  7 kept hold
-- ARGV: 1 allow id  2 life of the tombstone ms
-- Returns: {'refunded', version} | {'voided'}
-- Cost: O(log open holds); 3 to 13 calls
local value = redis.call('GET', KEYS[4]) or redis.call('GET', KEYS[7])
local estimate, day, month, named
if value then estimate, day, month, named = string.match(value, '^H (%d+) (%d+) (%d+) ([01]) ') end
redis.call('SET', KEYS[4], 'V', 'PX', ARGV[2])
if not estimate then return {'voided'} end
-- The record of a run expires; it must not come back without a life and with less than nothing spent.
local run_known = named == '1' and redis.call('EXISTS', KEYS[3]) == 1
if estimate ~= '0' then
  local back = string.format('-%s', estimate)
  redis.call('HINCRBY', KEYS[2], string.format('d%s', day), back)
  redis.call('HINCRBY', KEYS[2], string.format('m%s', month), back)
  redis.call('HINCRBY', KEYS[1], string.format('t%s', month), back)
  if run_known then redis.call('HINCRBY', KEYS[3], 'spent', back) end
end
if run_known then redis.call('HINCRBY', KEYS[3], 'calls', -1) end
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('DEL', KEYS[7])
redis.call('ZREM', KEYS[6], ARGV[1])
return {'refunded', redis.call('HINCRBY', KEYS[1], 'version', 1)}
