-- Fragment: creates the deliveries of events, and marks webhooks with pending deliveries as ready. Needs clock.lua,
-- ready.lua, trim.lua.

-- KEYS[first] and the following are six per webhook: its record, its due deliveries, its parked ones, all of them, the
-- delivered and the failed ones. ARGV[at] and the following are for each webhook: its name among the ready ones, the
-- number of deliveries, and their texts after the state. At most `waiting_max` deliveries wait for one webhook. Returns
-- the number of deliveries that this limit refused.
local function make_deliveries(first, at, waiting_max, history_max, events)
  local refused = 0
  for hook = first, #KEYS, 6 do
    local count = tonumber(ARGV[at + 1])
    local waiting = call('ZCARD', KEYS[hook + 1]) + call('ZCARD', KEYS[hook + 2])
    local last = call('HINCRBY', KEYS[hook], 'next', count)
    for delivery = 1, count do
      -- Numbers have equal length, so that deliveries of the same moment sort in order.
      local number = format('%016d', last - count + delivery)
      local text = ARGV[at + 1 + delivery]
      if waiting < tonumber(waiting_max) then
        waiting = waiting + 1
        call('HSET', KEYS[hook + 3], number, format('%d pending %s', now_ms, text))
        call('ZADD', KEYS[hook + 1], now_ms, number)
      else
        refused = refused + 1
        call('HSET', KEYS[hook + 3], number, format('%d refused %s', now_ms, text))
        call('ZADD', KEYS[hook + 5], now_ms, number)
      end
    end
    trim(hook + 3, hook + 4, hook + 5, history_max)
    set_ready(@KEYS.ready, hook, hook + 1, hook + 2, ARGV[at], events)
    at = at + 2 + count
  end
  return refused
end

