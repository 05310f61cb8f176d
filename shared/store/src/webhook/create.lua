-- Purpose: register a webhook. It is told of what happens after its own entry in the audit log.
-- KEYS: 1 account record  2 audit log  3 webhooks  4 webhook
-- ARGV: 1 mode  2 audit entry  3 webhook id  4 most webhooks  5 and on: fields and their values
-- Returns: {'created', field, value, …} (the whole record) | {'too_many'} | {'no_account'}
-- Cost: O(log webhooks); 13 calls
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[4]) then return {'too_many'} end

redis.call('ZADD', KEYS[3], now_ms, ARGV[3])
recorded()
local seq = redis.call('HGET', KEYS[1], string.format('%s_audit_seq', ARGV[1]))
redis.call('HSET', KEYS[4], 'id', ARGV[3], 'created_at', now, 'updated_at', now, 'secret_at', now, 'since', seq,
  unpack(ARGV, 5))
local count = redis.call('ZCARD', KEYS[3])
redis.call('HSET', KEYS[1], string.format('%s_webhooks', ARGV[1]), count)
redis.call('HINCRBY', KEYS[1], string.format('%s_webhooks_version', ARGV[1]), 1)
-- Nobody was told of anything before the first one.
if count == 1 then redis.call('HSET', KEYS[1], string.format('%s_dispatched', ARGV[1]), seq) end
return {'created', unpack(redis.call('HGETALL', KEYS[4]))}
