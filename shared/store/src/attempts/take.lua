-- Purpose: take one of the attempts that there are in a span of time, before anybody looks whether it is right; so guesses
--   at the same moment cannot be more than there are. When the last one is taken the lock stands for the span.
-- KEYS: 1 attempts
-- ARGV: 1 most attempts  2 span in ms
-- Returns: {'taken'} | {'locked', ms until it ends}
-- Cost: O(most attempts); at most 6 calls
local most, span = tonumber(ARGV[1]), tonumber(ARGV[2])
local left = redis.call('PTTL', KEYS[1])
local taken = redis.call('LRANGE', KEYS[1], 0, -1)
if #taken >= most then return {'locked', string.format('%d', math.max(left, 1))} end

local old = 0
for at, time in ipairs(taken) do
  if tonumber(time) > now_ms - span then break end
  old = at
end
if old > 0 then redis.call('LTRIM', KEYS[1], old, -1) end
redis.call('RPUSH', KEYS[1], string.format('%d', now_ms))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'taken'}
