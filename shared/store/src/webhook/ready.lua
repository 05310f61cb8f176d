
-- Fragment: computes when a webhook has a pending delivery, and sets its position among the ready ones of the bucket.
-- Needs clock.lua. The numbers are indexes of KEYS: the ready ones, and the webhook's record, due and parked
-- deliveries. `events` is the number of the account's last event: deliveries parked at a lower one are due.

local function set_ready(ready, record, due, parked, member, events)
  local state = call('HMGET', KEYS[record], 'status', 'lease_until')
  -- The holder of the lease does this when it ends. If the holder dies, the end of the lease is the webhook's time.
  if tonumber(state[2] or '0') > now_ms then return end
  local at
  if state[1] == 'active' then
    if call('ZCOUNT', KEYS[parked], '-inf', format('(%d', events)) > 0 then
      at = now_ms
    else
      at = call('ZRANGE', KEYS[due], 0, 0, 'WITHSCORES')[2]
    end
  end
  if at then
    call('ZADD', KEYS[ready], at, member)
  else
    call('ZREM', KEYS[ready], member)
  end
end
