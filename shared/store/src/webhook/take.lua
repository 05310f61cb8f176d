-- Purpose: take or renew the lease of a webhook, and read its due deliveries; end the lease if there are none.
-- KEYS: as deliver.rs names them
-- ARGV: as deliver.rs names them. `member` is the webhook's name among the ready ones, `token` identifies the caller.
--   `farthest` is the longest time until a delivery can be due, in ms: later due times were written before the clock
--   was set back
-- Returns: {'taken', now ms, url, sealed secret, old one or '', its end in ms, then number and text of each delivery} |
--   {'idle'} (no delivery is due; the lease has ended) | {'held'} (another server has the lease) | {'gone'} (deleted or
--   disabled)
-- Cost: O(log deliveries + deliveries taken); up to 11 calls, and 2 for a number without its text
local hook = call('HMGET', KEYS.webhook, 'status', 'lease', 'lease_until', 'url', 'secret', 'old_secret', 'old_until')
local lease_until = tonumber(hook[3] or '0')
if hook[2] and hook[2] ~= ARGV.token and lease_until > now_ms and lease_until <= now_ms + tonumber(ARGV.lease_life) then
  return {'held'}
end
if hook[1] ~= 'active' then
  call('ZREM', KEYS.ready, ARGV.member)
  if hook[1] then call('HDEL', KEYS.webhook, 'lease', 'lease_until') end
  return {'gone'}
end
local events = tonumber(call('HGET', KEYS.account, format('%s_events', ARGV.mode)) or '0')
local most = tonumber(ARGV.deliveries_max)
local numbers = call('ZRANGEBYSCORE', KEYS.due, '-inf', now_ms, 'LIMIT', 0, most)
local parked = call('ZRANGEBYSCORE', KEYS.parked, '-inf', format('(%d', events), 'LIMIT', 0, most - #numbers)
for _, number in ipairs(parked) do table.insert(numbers, number) end
local far = format('(%d', now_ms + tonumber(ARGV.farthest))
local lost = call('ZRANGEBYSCORE', KEYS.due, far, '+inf', 'LIMIT', 0, most - #numbers)
for _, number in ipairs(lost) do table.insert(numbers, number) end

if #numbers == 0 then
  call('HDEL', KEYS.webhook, 'lease', 'lease_until')
  set_ready(@KEYS.ready, @KEYS.webhook, @KEYS.due, @KEYS.parked, ARGV.member, events)
  return {'idle'}
end
local lease_end = format('%d', now_ms + tonumber(ARGV.lease_life))
call('HSET', KEYS.webhook, 'lease', ARGV.token, 'lease_until', lease_end)
call('ZADD', KEYS.ready, lease_end, ARGV.member)
local reply = {'taken', format('%d', now_ms), hook[4], hook[5], hook[6] or '', hook[7] or '0'}
for at, text in ipairs(call('HMGET', KEYS.deliveries, unpack(numbers))) do
  if text then
    table.insert(reply, numbers[at])
    table.insert(reply, text)
  else
    call('ZREM', KEYS.due, numbers[at])
    call('ZREM', KEYS.parked, numbers[at])
  end
end
return reply
