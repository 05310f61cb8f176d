-- Purpose: register a webhook. It receives the events of later audit entries.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them
-- Returns: {'created', field, value, …} (the whole record) | {'too_many'} | {'no_account'}
-- Cost: O(log webhooks); 13 calls
if redis.call('ZCARD', KEYS.webhooks) >= tonumber(ARGV.webhooks_max) then return {'too_many'} end

redis.call('ZADD', KEYS.webhooks, now_ms, ARGV.webhook_id)
recorded()
local seq = redis.call('HGET', KEYS.account, string.format('%s_audit_seq', ARGV.mode))
redis.call('HSET', KEYS.webhook, 'id', ARGV.webhook_id, 'created_at', now, 'updated_at', now, 'secret_at', now, 'since', seq,
  unpack(ARGV, @ARGV.fields))
local count = redis.call('ZCARD', KEYS.webhooks)
redis.call('HSET', KEYS.account, string.format('%s_webhooks', ARGV.mode), count)
redis.call('HINCRBY', KEYS.account, string.format('%s_webhooks_version', ARGV.mode), 1)
-- No event was dispatched before the first webhook.
if count == 1 then redis.call('HSET', KEYS.account, string.format('%s_dispatched', ARGV.mode), seq) end
return {'created', unpack(redis.call('HGETALL', KEYS.webhook))}
