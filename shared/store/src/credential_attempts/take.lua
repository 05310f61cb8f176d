-- Purpose: count an attempt within a span of time, before the credential is checked, so that concurrent guesses cannot
--   exceed the limit. The last allowed attempt starts a lock for the span. Attempts with a longer remaining time were
--   counted while the store's clock was ahead; they do not count.
-- KEYS: as credential_attempts.rs names them
-- ARGV: as credential_attempts.rs names them. `span` is in ms
-- Returns: {'taken'} | {'locked', ms until it ends}
-- Cost: O(maximum number of attempts); at most 6 calls
local most, span = tonumber(ARGV.attempts_max), tonumber(ARGV.span)
local left = call('PTTL', KEYS.attempts)
local taken = call('LRANGE', KEYS.attempts, 0, -1)
local ahead = left > span
if #taken >= most and not ahead then return {'locked', format('%d', math.max(left, 1))} end

local old = 0
for at, time in ipairs(taken) do
  if not ahead and tonumber(time) > now_ms - span then break end
  old = at
end
if old > 0 then call('LTRIM', KEYS.attempts, old, -1) end
call('RPUSH', KEYS.attempts, format('%d', now_ms))
call('PEXPIRE', KEYS.attempts, ARGV.span)
return {'taken'}
