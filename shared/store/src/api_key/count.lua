-- Purpose: count one management request of an API key against its rate, and record when the key was last used.
-- KEYS: as count.rs names them. `requests` counts the requests in the window
-- ARGV: as count.rs names them. `limit` is the maximum of requests in a window ('' = not counted), `window` in ms
-- Returns: {'gone'} (no such key, or revoked) | {'uncounted'} | {'passed' | 'over', used, ms to the window's end, now
--   ms}
-- Cost: O(1); up to 6 calls
-- The window opens at the first request and has a fixed length. A window that ends later than one opened now was opened
-- while the store's clock was ahead, and is replaced. Requests over the limit are not counted: counting them would only
-- delay the effect of a plan upgrade.
local MINUTE = 60000
local key = call('HMGET', KEYS.api_key, 'id', 'revoked_at', 'last_used')
if not key[1] or key[2] then return {'gone'} end

local limit, used, left = tonumber(ARGV.limit), 0, tonumber(ARGV.window)
local open = false
if limit then
  local rest = call('PTTL', KEYS.requests)
  if rest >= 0 and rest <= left then open, used, left = true, tonumber(call('GET', KEYS.requests)), rest end
end

local minute = format('%d', now_ms - now_ms % MINUTE)
if key[3] ~= minute then call('HSET', KEYS.api_key, 'last_used', minute) end
if not limit then return {'uncounted'} end
local word = 'over'
if used < limit then
  used, word = used + 1, 'passed'
  if open then call('INCR', KEYS.requests) else call('SET', KEYS.requests, '1', 'PX', left) end
end
return {word, format('%d', used), format('%d', left), format('%d', now_ms)}
