-- Purpose: change a webhook. After a new secret the old one stays good for a while.
-- KEYS: 1 account record  2 audit log  3 webhook  4 ready webhooks of the bucket  5 its due deliveries  6 its parked ones
-- ARGV: 1 mode  2 audit entry  3 its name among the ready ones  4 how long an old secret stays good, in ms
--   5 new sealed secret, or ''  6 and on, in threes: 'set' field value, or 'clear' field ''
-- Returns: {'updated', field, value, …} (the whole record) | {'missing'} | {'no_account'}
-- Cost: O(log ready); 13 calls and one a field
local old = redis.call('HGET', KEYS[3], 'secret')
if not old then return {'missing'} end

if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[3], 'secret', ARGV[5], 'secret_at', now, 'old_secret', old, 'old_until',
    string.format('%d', now_ms + tonumber(ARGV[4])))
end
change_fields(3, 6)
redis.call('HSET', KEYS[3], 'updated_at', now)
redis.call('HINCRBY', KEYS[1], string.format('%s_webhooks_version', ARGV[1]), 1)
recorded()
place(4, 3, 5, 6, ARGV[3], tonumber(redis.call('HGET', KEYS[1], string.format('%s_events', ARGV[1])) or '0'))
return {'updated', unpack(redis.call('HGETALL', KEYS[3]))}
