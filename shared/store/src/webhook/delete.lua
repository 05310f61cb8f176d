-- Purpose: delete a webhook with all of its deliveries. With the last one goes what waits to be told.
-- KEYS: 1 account record  2 audit log  3 webhooks  4 webhook  5 ready webhooks of the bucket  6 its due deliveries
--   7 its parked ones  8 all of them  9 delivered  10 failed  11 violations of the minute  12 those that wait for its end
--   13 the order of these
-- ARGV: 1 mode  2 audit entry  3 webhook id  4 its name among the ready ones
-- Returns: {'deleted'} | {'missing'} | {'no_account'}
-- Cost: O(deliveries); 21 calls
if redis.call('DEL', KEYS[4]) == 0 then return {'missing'} end
redis.call('ZREM', KEYS[3], ARGV[3])
redis.call('ZREM', KEYS[5], ARGV[4])
for at = 6, 10 do redis.call('UNLINK', KEYS[at]) end
local left = redis.call('ZCARD', KEYS[3])
redis.call('HSET', KEYS[1], string.format('%s_webhooks', ARGV[1]), left)
if left == 0 then
  redis.call('HDEL', KEYS[1], string.format('%s_violations', ARGV[1]))
  for at = 11, 13 do redis.call('UNLINK', KEYS[at]) end
end
redis.call('HINCRBY', KEYS[1], string.format('%s_webhooks_version', ARGV[1]), 1)
recorded()
return {'deleted'}
