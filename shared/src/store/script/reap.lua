-- Purpose: turn a hold that nobody settled by its deadline into a kept one: the charge stays, and becomes visible.
-- KEYS: 1 account record  2 hold  3 due  4 kept index  5 kept hold  6 audit log
-- ARGV: 1 allow id  2 life of the kept record ms  3 audit entry (JSON without seq and at)
-- Returns: {'kept'} | {'early'} (its deadline has not come) | {'gone'} (settled or voided meanwhile)
-- Cost: O(log open holds); 3 to 10 calls
local deadline = redis.call('ZSCORE', KEYS[3], ARGV[1])
if deadline and tonumber(deadline) > now_ms then return {'early'} end
local value = redis.call('GET', KEYS[2])
if not value or value == 'V' then
  redis.call('ZREM', KEYS[3], ARGV[1])
  return {'gone'}
end
redis.call('SET', KEYS[5], value, 'PX', ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now_ms - tonumber(ARGV[2]))
redis.call('ZADD', KEYS[4], now_ms, ARGV[1])
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('HINCRBY', KEYS[1], 'version', 1)
local seq = redis.call('HINCRBY', KEYS[1], 'live_audit_seq', 1)
redis.call('RPUSH', KEYS[6], string.format('%d %d %s', seq, now_ms, ARGV[3]))
return {'kept'}
