-- Purpose: take one of the attempts that there are in a span of time, before anybody looks whether it is right; so
--   guesses at the same moment cannot be more than there are. When the last one is taken the lock stands for the span.
--   Attempts that are kept for longer than a span were taken while the store's clock was ahead; they do not count.
-- KEYS: as attempts.rs names them
-- ARGV: as attempts.rs names them. `span` is in ms
-- Returns: {'taken'} | {'locked', ms until it ends}
-- Cost: O(most attempts); at most 6 calls
local most, span = tonumber(ARGV.attempts_max), tonumber(ARGV.span)
local left = redis.call('PTTL', KEYS.attempts)
local taken = redis.call('LRANGE', KEYS.attempts, 0, -1)
local ahead = left > span
if #taken >= most and not ahead then return {'locked', string.format('%d', math.max(left, 1))} end

local old = 0
for at, time in ipairs(taken) do
  if not ahead and tonumber(time) > now_ms - span then break end
  old = at
end
if old > 0 then redis.call('LTRIM', KEYS.attempts, old, -1) end
redis.call('RPUSH', KEYS.attempts, string.format('%d', now_ms))
redis.call('PEXPIRE', KEYS.attempts, ARGV.span)
return {'taken'}
