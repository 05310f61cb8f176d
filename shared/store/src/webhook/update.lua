-- Purpose: change a webhook. After a new secret is set, the old one stays valid for a while.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `member` is the webhook's name among the ready ones, `overlap` how
--   long an old secret stays valid, in ms, and `secret` the new sealed one or ''. `changes` come in threes: 'set' field
--   value, or 'clear' field ''
-- Returns: {'updated', field, value, …} (the whole record) | {'missing'} | {'no_account'}
-- Cost: O(log ready); 13 calls and one per field
local old = redis.call('HGET', KEYS.webhook, 'secret')
if not old then return {'missing'} end

if ARGV.secret ~= '' then
  redis.call('HSET', KEYS.webhook, 'secret', ARGV.secret, 'secret_at', now, 'old_secret', old, 'old_until',
    string.format('%d', now_ms + tonumber(ARGV.overlap)))
end
change_fields(@KEYS.webhook, @ARGV.changes)
redis.call('HSET', KEYS.webhook, 'updated_at', now)
redis.call('HINCRBY', KEYS.account, string.format('%s_webhooks_version', ARGV.mode), 1)
recorded()
place(@KEYS.ready, @KEYS.webhook, @KEYS.due, @KEYS.parked, ARGV.member, tonumber(redis.call('HGET', KEYS.account, string.format('%s_events', ARGV.mode)) or '0'))
return {'updated', unpack(redis.call('HGETALL', KEYS.webhook))}
