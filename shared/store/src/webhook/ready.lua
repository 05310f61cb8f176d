
-- Fragment: when a webhook has something to deliver, and its place among the ready ones of the bucket. Needs clock.lua.
-- The numbers say which KEYS: the ready ones, and of the webhook its record, its due and its parked deliveries.
-- `events` is the number of the account's last event: what is parked at a lower one has its turn.

local function place(ready, record, due, parked, member, events)
  local state = redis.call('HMGET', KEYS[record], 'status', 'lease_until')
  -- Whoever holds the lease does this at its end; if he dies, the end of the lease is the webhook's time.
  if tonumber(state[2] or '0') > now_ms then return end
  local at
  if state[1] == 'active' then
    if redis.call('ZCOUNT', KEYS[parked], '-inf', string.format('(%d', events)) > 0 then
      at = now_ms
    else
      at = redis.call('ZRANGE', KEYS[due], 0, 0, 'WITHSCORES')[2]
    end
  end
  if at then
    redis.call('ZADD', KEYS[ready], at, member)
  else
    redis.call('ZREM', KEYS[ready], member)
  end
end
