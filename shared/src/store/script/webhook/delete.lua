-- Purpose: delete a webhook with all of its deliveries.
-- KEYS: 1 account record  2 audit log  3 webhooks  4 webhook  5 ready webhooks of the bucket  6 its due deliveries
--   7 its parked ones  8 all of them  9 delivered  10 failed
-- ARGV: 1 mode  2 audit entry  3 webhook id  4 its name among the ready ones
-- Returns: {'deleted'} | {'missing'} | {'no_account'}
-- Cost: O(deliveries); 17 calls
if redis.call('DEL', KEYS[4]) == 0 then return {'missing'} end
redis.call('ZREM', KEYS[3], ARGV[3])
redis.call('ZREM', KEYS[5], ARGV[4])
for at = 6, 10 do redis.call('UNLINK', KEYS[at]) end
redis.call('HSET', KEYS[1], string.format('%s_webhooks', ARGV[1]), redis.call('ZCARD', KEYS[3]))
redis.call('HINCRBY', KEYS[1], string.format('%s_webhooks_version', ARGV[1]), 1)
recorded()
return {'deleted'}
