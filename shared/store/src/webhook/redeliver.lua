-- Purpose: attempt a finished delivery of a webhook again, from the beginning, because somebody asked for it.
-- KEYS: 1 account record  2 audit log  3 webhook  4 ready webhooks of the bucket  5 its due deliveries  6 its parked ones
--   7 all of them  8 delivered  9 failed
-- ARGV: 1 mode  2 audit entry  3 its name among the ready ones  4 number of the delivery  5 its text before  6 and after
--   7 most deliveries that wait
-- Returns: {'pending'} | {'missing'} (no such webhook) | {'disabled'} | {'full'} (too many wait) | {'changed'} (the delivery is
--   not as the caller saw it; nothing happened, look again) | {'no_account'}
-- Cost: O(log deliveries); 16 calls
local status = redis.call('HGET', KEYS[3], 'status')
if not status then return {'missing'} end
if status ~= 'active' then return {'disabled'} end
if redis.call('HGET', KEYS[7], ARGV[4]) ~= ARGV[5] then return {'changed'} end
if redis.call('ZCARD', KEYS[5]) + redis.call('ZCARD', KEYS[6]) >= tonumber(ARGV[7]) then return {'full'} end

redis.call('HSET', KEYS[7], ARGV[4], ARGV[6])
redis.call('ZREM', KEYS[8], ARGV[4])
redis.call('ZREM', KEYS[9], ARGV[4])
redis.call('ZADD', KEYS[5], now_ms, ARGV[4])
recorded()
place(4, 3, 5, 6, ARGV[3], tonumber(redis.call('HGET', KEYS[1], string.format('%s_events', ARGV[1])) or '0'))
return {'pending'}
