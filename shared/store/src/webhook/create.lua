-- Purpose: register a webhook. It receives the events of later audit entries.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them
-- Returns: {'created', field, value, …} (the whole record) | {'too_many'} | {'no_account'}
-- Cost: O(log webhooks); 13 calls
if call('ZCARD', KEYS.webhooks) >= tonumber(ARGV.webhooks_max) then return {'too_many'} end

call('ZADD', KEYS.webhooks, now_ms, ARGV.webhook_id)
recorded()
local seq = call('HGET', KEYS.account, format('%s_audit_seq', ARGV.mode))
call('HSET', KEYS.webhook, 'id', ARGV.webhook_id, 'created_at', now, 'updated_at', now, 'secret_at', now, 'since', seq,
  unpack(ARGV, @ARGV.fields))
local count = call('ZCARD', KEYS.webhooks)
call('HSET', KEYS.account, format('%s_webhooks', ARGV.mode), count)
call('HINCRBY', KEYS.account, format('%s_webhooks_version', ARGV.mode), 1)
-- No event was dispatched before the first webhook.
if count == 1 then call('HSET', KEYS.account, format('%s_dispatched', ARGV.mode), seq) end
return {'created', unpack(call('HGETALL', KEYS.webhook))}
