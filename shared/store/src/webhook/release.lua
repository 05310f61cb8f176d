-- Purpose: end the lease of a webhook, and schedule its next delivery.
-- KEYS: as deliver.rs names them
-- ARGV: as deliver.rs names them. `member` is the webhook's name among the ready ones, `token` identifies the holder
-- Returns: {'released'} | {'lost'} (another server holds it, or the webhook is gone; nothing changed)
-- Cost: O(log ready); 7 calls
if call('HGET', KEYS.webhook, 'lease') ~= ARGV.token then return {'lost'} end

call('HDEL', KEYS.webhook, 'lease', 'lease_until')
local events = tonumber(call('HGET', KEYS.account, format('%s_events', ARGV.mode)) or '0')
set_ready(@KEYS.ready, @KEYS.webhook, @KEYS.due, @KEYS.parked, ARGV.member, events)
return {'released'}
