-- Purpose: end the lease of a webhook, and schedule its next delivery.
-- KEYS: as deliver.rs names them
-- ARGV: as deliver.rs names them. `member` is the webhook's name among the ready ones, `token` identifies the holder
-- Returns: {'released'} | {'lost'} (another server holds it, or the webhook is gone; nothing changed)
-- Cost: O(log ready); 7 calls
if redis.call('HGET', KEYS.webhook, 'lease') ~= ARGV.token then return {'lost'} end

redis.call('HDEL', KEYS.webhook, 'lease', 'lease_until')
local events = tonumber(redis.call('HGET', KEYS.account, string.format('%s_events', ARGV.mode)) or '0')
place(@KEYS.ready, @KEYS.webhook, @KEYS.due, @KEYS.parked, ARGV.member, events)
return {'released'}
