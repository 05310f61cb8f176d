-- Purpose: end the lease of a webhook and say when it has something to deliver again.
-- KEYS: 1 account record  2 ready webhooks of the bucket  3 webhook  4 its due deliveries  5 its parked ones
-- ARGV: 1 mode  2 its name among the ready ones  3 who had the lease
-- Returns: {'released'} | {'lost'} (another one has it, or the webhook is gone; nothing happened)
-- Cost: O(log ready); 7 calls
if redis.call('HGET', KEYS[3], 'lease') ~= ARGV[3] then return {'lost'} end

redis.call('HDEL', KEYS[3], 'lease', 'lease_until')
local events = tonumber(redis.call('HGET', KEYS[1], string.format('%s_events', ARGV[1])) or '0')
place(2, 3, 4, 5, ARGV[2], events)
return {'released'}
