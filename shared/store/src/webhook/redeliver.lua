-- Purpose: attempt a delivery of a webhook again, from the beginning, at a user's request: a finished delivery, or one
--   that waits for a later event.
-- KEYS: of a change, then as redeliver.rs names them
-- ARGV: of a change, then as redeliver.rs names them. `member` is the webhook's name among the ready ones; `before` and
--   `after` are texts of the delivery; `waiting_max` is the most deliveries that wait
-- Returns: {'pending'} | {'scheduled'} (an attempt is due or under way) | {'missing'} (no such webhook) | {'disabled'}
--   | {'full'} (too many wait) | {'changed'} (the delivery is not as the caller saw it; nothing happened, look again)
--   | {'no_account'}
-- Cost: O(log deliveries); 19 calls
local status = call('HGET', KEYS.webhook, 'status')
if not status then return {'missing'} end
if call('HGET', KEYS.deliveries, ARGV.number) ~= ARGV.before then return {'changed'} end
local events = tonumber(call('HGET', KEYS.account, format('%s_events', ARGV.mode)) or '0')
local parked_at = call('ZSCORE', KEYS.parked, ARGV.number)
-- A delivery parked until an event that has arrived is scheduled already, like a due one.
if call('ZSCORE', KEYS.due, ARGV.number) or parked_at and tonumber(parked_at) < events then return {'scheduled'} end
if status ~= 'active' then return {'disabled'} end
-- A parked delivery is among the waiting ones already, so it takes no further place.
if not parked_at and call('ZCARD', KEYS.due) + call('ZCARD', KEYS.parked) >= tonumber(ARGV.waiting_max) then
  return {'full'}
end

call('HSET', KEYS.deliveries, ARGV.number, ARGV.after)
call('ZREM', KEYS.parked, ARGV.number)
call('ZREM', KEYS.delivered, ARGV.number)
call('ZREM', KEYS.failed, ARGV.number)
call('ZADD', KEYS.due, now_ms, ARGV.number)
recorded()
set_ready(@KEYS.ready, @KEYS.webhook, @KEYS.due, @KEYS.parked, ARGV.member, events)
return {'pending'}
