-- Purpose: turn a hold that nobody settled by its deadline into a kept one: the charge stays, and becomes visible.
-- KEYS: 1 account record  2 agent  3 run  4 hold  5 due  6 kept index  7 kept hold  8 audit log
-- ARGV: 1 allow id  2 life of the kept record ms
-- Returns: {'kept'} | {'early'} (its deadline has not come) | {'gone'} (settled or voided meanwhile)
-- Cost: O(log open and kept holds); 2 to 19 calls
local EXPIRED_MAX = 10 -- more than the one that is added, so that the index does not grow by those that have ended
local deadline = call('ZSCORE', KEYS[5], ARGV[1])
if deadline and tonumber(deadline) > now_ms then return {'early'} end
local value = call('GET', KEYS[4])
if not value or value == 'V' then
  call('ZREM', KEYS[5], ARGV[1])
  return {'gone'}
end
call('SET', KEYS[7], value, 'PX', ARGV[2])
local ended = call('ZRANGEBYSCORE', KEYS[6], '-inf', now_ms - tonumber(ARGV[2]), 'LIMIT', 0, EXPIRED_MAX)
if ended[1] then call('ZREM', KEYS[6], unpack(ended)) end
call('ZADD', KEYS[6], now_ms, ARGV[1])
call('DEL', KEYS[4])
call('ZREM', KEYS[5], ARGV[1])
resolve(value, true, 'kept', string.match(value, '^H (%d+) '))
return {'kept'}
