-- Purpose: end the lease of a webhook and say when it has something to deliver again.
-- KEYS: as deliver.rs names them
-- ARGV: as deliver.rs names them. `member` is the webhook's name among the ready ones, `token` who had the lease
-- Returns: {'released'} | {'lost'} (another one has it, or the webhook is gone; nothing happened)
-- Cost: O(log ready); 7 calls
if redis.call('HGET', KEYS.webhook, 'lease') ~= ARGV.token then return {'lost'} end

redis.call('HDEL', KEYS.webhook, 'lease', 'lease_until')
local events = tonumber(redis.call('HGET', KEYS.account, string.format('%s_events', ARGV.mode)) or '0')
place(@KEYS.ready, @KEYS.webhook, @KEYS.due, @KEYS.parked, ARGV.member, events)
return {'released'}
