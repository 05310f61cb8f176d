-- Purpose: lease a webhook, or keep its lease, and see which of its deliveries have their turn; end the lease when none has.
-- KEYS: 1 account record  2 ready webhooks of the bucket  3 webhook  4 its due deliveries  5 its parked ones  6 all of them
-- ARGV: 1 mode  2 its name among the ready ones  3 who asks  4 length of the lease in ms  5 most deliveries
--   6 farthest that a delivery can be due, in ms: what lies beyond was written before the clock was set back
-- Returns: {'taken', now ms, url, sealed secret, old one or '', until when in ms, then number and text of each delivery}
--   | {'idle'} (nothing has its turn; the lease is over) | {'held'} (another one has the lease) | {'gone'} (deleted or disabled)
-- Cost: O(log deliveries + deliveries taken); up to 11 calls, and 2 for a number without its text
local hook = redis.call('HMGET', KEYS[3], 'status', 'lease', 'lease_until', 'url', 'secret', 'old_secret', 'old_until')
local lease_until = tonumber(hook[3] or '0')
if hook[2] and hook[2] ~= ARGV[3] and lease_until > now_ms and lease_until <= now_ms + tonumber(ARGV[4]) then
  return {'held'}
end
if hook[1] ~= 'active' then
  redis.call('ZREM', KEYS[2], ARGV[2])
  if hook[1] then redis.call('HDEL', KEYS[3], 'lease', 'lease_until') end
  return {'gone'}
end
local events = tonumber(redis.call('HGET', KEYS[1], string.format('%s_events', ARGV[1])) or '0')
local most = tonumber(ARGV[5])
local numbers = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now_ms, 'LIMIT', 0, most)
local parked = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', string.format('(%d', events), 'LIMIT', 0, most - #numbers)
for _, number in ipairs(parked) do table.insert(numbers, number) end
local far = string.format('(%d', now_ms + tonumber(ARGV[6]))
local lost = redis.call('ZRANGEBYSCORE', KEYS[4], far, '+inf', 'LIMIT', 0, most - #numbers)
for _, number in ipairs(lost) do table.insert(numbers, number) end

if #numbers == 0 then
  redis.call('HDEL', KEYS[3], 'lease', 'lease_until')
  place(2, 3, 4, 5, ARGV[2], events)
  return {'idle'}
end
local lease_end = string.format('%d', now_ms + tonumber(ARGV[4]))
redis.call('HSET', KEYS[3], 'lease', ARGV[3], 'lease_until', lease_end)
redis.call('ZADD', KEYS[2], lease_end, ARGV[2])
local reply = {'taken', string.format('%d', now_ms), hook[4], hook[5], hook[6] or '', hook[7] or '0'}
for at, text in ipairs(redis.call('HMGET', KEYS[6], unpack(numbers))) do
  if text then
    table.insert(reply, numbers[at])
    table.insert(reply, text)
  else
    redis.call('ZREM', KEYS[4], numbers[at])
    redis.call('ZREM', KEYS[5], numbers[at])
  end
end
return reply
