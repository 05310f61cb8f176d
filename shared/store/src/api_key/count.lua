-- Purpose: count one management request of an API key against its rate, and note when the key was last used.
-- KEYS: 1 requests in the window  2 API key
-- ARGV: 1 requests allowed in a window ('' = not counted)  2 window ms
-- Returns: {'gone'} (no such key, or revoked) | {'uncounted'} | {'passed' | 'over', used, ms to the window's end, now ms}
-- Cost: O(1); up to 6 calls
-- The window opens at the first request and has a fixed length. What is over the limit is not counted: it would only keep
-- a plan that was raised meanwhile from helping.
local MINUTE = 60000
local key = redis.call('HMGET', KEYS[2], 'id', 'revoked_at', 'last_used')
if not key[1] or key[2] then return {'gone'} end

local limit, used, left = tonumber(ARGV[1]), 0, tonumber(ARGV[2])
local open = false
if limit then
  local rest = redis.call('PTTL', KEYS[1])
  if rest >= 0 then open, used, left = true, tonumber(redis.call('GET', KEYS[1])), rest end
end

local minute = string.format('%d', now_ms - now_ms % MINUTE)
if key[3] ~= minute then redis.call('HSET', KEYS[2], 'last_used', minute) end
if not limit then return {'uncounted'} end
local word = 'over'
if used < limit then
  used, word = used + 1, 'passed'
  if open then redis.call('INCR', KEYS[1]) else redis.call('SET', KEYS[1], '1', 'PX', left) end
end
return {word, string.format('%d', used), string.format('%d', left), string.format('%d', now_ms)}
