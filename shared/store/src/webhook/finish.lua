-- Purpose: keep what came of an attempt, and say when the next one is.
-- KEYS: 1 account record  2 due deliveries of the webhook  3 parked ones  4 all of them  5 delivered  6 failed
-- ARGV: 1 mode  2 number of the delivery  3 its text before  4 and after  5 'delivered', 'failed', 'retry' or 'park'
--   6 pause before the next attempt in ms  7 most finished deliveries
-- Returns: {'kept'} | {'stale'} (it is gone, or somebody else attempted it meanwhile; nothing happened)
-- Cost: O(log deliveries); up to 11 calls
if redis.call('HGET', KEYS[4], ARGV[2]) ~= ARGV[3] then return {'stale'} end
local parked_at = redis.call('ZSCORE', KEYS[3], ARGV[2])

redis.call('HSET', KEYS[4], ARGV[2], ARGV[4])
redis.call('ZREM', KEYS[2], ARGV[2])
if ARGV[5] == 'park' then
  -- Each later event gives one attempt: behind one that it had while parked comes the next one's.
  local events = redis.call('HGET', KEYS[1], string.format('%s_events', ARGV[1])) or '0'
  redis.call('ZADD', KEYS[3], parked_at and tonumber(parked_at) + 1 or events, ARGV[2])
else
  redis.call('ZREM', KEYS[3], ARGV[2])
  if ARGV[5] == 'retry' then
    redis.call('ZADD', KEYS[2], now_ms + tonumber(ARGV[6]), ARGV[2])
  else
    redis.call('ZADD', KEYS[ARGV[5] == 'delivered' and 5 or 6], now_ms, ARGV[2])
    trim(4, 5, 6, ARGV[7])
  end
end
return {'kept'}
