-- Purpose: attempt a finished delivery of a webhook again, from the beginning, because somebody asked for it.
-- KEYS: of a change, then as redeliver.rs names them
-- ARGV: of a change, then as redeliver.rs names them. `member` is the webhook's name among the ready ones; `before` and
--   `after` are texts of the delivery; `waiting_max` is the most deliveries that wait
-- Returns: {'pending'} | {'missing'} (no such webhook) | {'disabled'} | {'full'} (too many wait) | {'changed'} (the
--   delivery is not as the caller saw it; nothing happened, look again) | {'no_account'}
-- Cost: O(log deliveries); 16 calls
local status = redis.call('HGET', KEYS.webhook, 'status')
if not status then return {'missing'} end
if status ~= 'active' then return {'disabled'} end
if redis.call('HGET', KEYS.deliveries, ARGV.number) ~= ARGV.before then return {'changed'} end
if redis.call('ZCARD', KEYS.due) + redis.call('ZCARD', KEYS.parked) >= tonumber(ARGV.waiting_max) then return {'full'} end

redis.call('HSET', KEYS.deliveries, ARGV.number, ARGV.after)
redis.call('ZREM', KEYS.delivered, ARGV.number)
redis.call('ZREM', KEYS.failed, ARGV.number)
redis.call('ZADD', KEYS.due, now_ms, ARGV.number)
recorded()
place(@KEYS.ready, @KEYS.webhook, @KEYS.due, @KEYS.parked, ARGV.member, tonumber(redis.call('HGET', KEYS.account, string.format('%s_events', ARGV.mode)) or '0'))
return {'pending'}
