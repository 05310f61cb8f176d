-- Purpose: count one request of a test-mode API key, or of a session, against its technical limit and that of all of them in
--   its account (decision D71).
-- KEYS: 1 requests of the caller in its window  2 requests of the account in its window
-- ARGV: 1 most requests of the caller in a window  2 most of the account  3 window ms
-- Returns: {'passed'} | {'over' | 'account_over', ms to the window's end}
-- Cost: O(1); up to 6 calls
-- A window opens at the first request and has a fixed length. What is over a limit is counted nowhere.
local words, is_open = {'over', 'account_over'}, {}
for at = 1, 2 do
  local used, left = 0, redis.call('PTTL', KEYS[at])
  is_open[at] = left >= 0
  if is_open[at] then used = tonumber(redis.call('GET', KEYS[at])) else left = tonumber(ARGV[3]) end
  if used >= tonumber(ARGV[at]) then return {words[at], string.format('%d', left)} end
end

for at = 1, 2 do
  if is_open[at] then redis.call('INCR', KEYS[at]) else redis.call('SET', KEYS[at], '1', 'PX', ARGV[3]) end
end
return {'passed'}
