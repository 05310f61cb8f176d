-- Purpose: make the deliveries of the events that follow from a row of audit entries, and advance the account's cursor over
--   these entries in the same step: each delivery is made once, whoever else tries.
-- KEYS: 1 account record  2 ready webhooks of the bucket  3 and on, six a webhook: its record, its due deliveries, its parked
--   ones, all of them, delivered, failed
-- ARGV: 1 mode  2 version of the account's webhooks  3 number of the last entry before  4 and after  5 how many events
--   6 most deliveries that wait for one webhook  7 most finished ones  8 and on for each webhook: its name among the ready
--   ones, how many deliveries, and the texts of these behind their state
-- Returns: {'done', how many deliveries were refused} | {'moved'} (the cursor is elsewhere) | {'changed'} (the webhooks are
--   others than the caller saw); nothing happened then, look again
-- Cost: O(webhooks + deliveries); 3 calls, 6 a webhook, and 2 to 9 a delivery
local function field(name) return string.format(name, ARGV[1]) end
local state = redis.call('HMGET', KEYS[1], field('%s_webhooks_version'), field('%s_dispatched'))
if (state[1] or '0') ~= ARGV[2] then return {'changed'} end
if (state[2] or '0') ~= ARGV[3] then return {'moved'} end

redis.call('HSET', KEYS[1], field('%s_dispatched'), ARGV[4])
local events = redis.call('HINCRBY', KEYS[1], field('%s_events'), ARGV[5])
local at, refused = 8, 0
for hook = 3, #KEYS, 6 do
  local count = tonumber(ARGV[at + 1])
  local waiting = redis.call('ZCARD', KEYS[hook + 1]) + redis.call('ZCARD', KEYS[hook + 2])
  local last = redis.call('HINCRBY', KEYS[hook], 'next', count)
  for delivery = 1, count do
    -- Of one length, so that those of the same moment stand in their order.
    local number = string.format('%016d', last - count + delivery)
    local text = ARGV[at + 1 + delivery]
    if waiting < tonumber(ARGV[6]) then
      waiting = waiting + 1
      redis.call('HSET', KEYS[hook + 3], number, string.format('%d pending %s', now_ms, text))
      redis.call('ZADD', KEYS[hook + 1], now_ms, number)
    else
      refused = refused + 1
      redis.call('HSET', KEYS[hook + 3], number, string.format('%d refused %s', now_ms, text))
      redis.call('ZADD', KEYS[hook + 5], now_ms, number)
    end
  end
  trim(hook + 3, hook + 4, hook + 5, ARGV[7])
  place(2, hook, hook + 1, hook + 2, ARGV[at], events)
  at = at + 2 + count
end
return {'done', string.format('%d', refused)}
