-- Purpose: count one request of a test-mode API key, or of a session, against its technical limit and that of its
--   account (decision D71).
-- KEYS: as request_limits.rs names them: counts of requests in a window
-- ARGV: as request_limits.rs names them. The first two are limits of the two keys, '' if the second one is not checked;
--   `window` is in ms
-- Returns: {'passed'} | {'over' | 'account_over', ms until the end of the window}
-- Cost: O(1); up to 6 calls
-- A window opens at the first request and has a fixed length. A request over a limit is not counted at all. A window
-- that ends later than one opened now was opened while the store's clock was ahead, and is replaced.
local words, is_open = {'over', 'account_over'}, {}
local last = ARGV.account_max == '' and @KEYS.of_caller or @KEYS.of_account
for at = @KEYS.of_caller, last do
  local used, left = 0, call('PTTL', KEYS[at])
  is_open[at] = left >= 0 and left <= tonumber(ARGV.window)
  if is_open[at] then used = tonumber(call('GET', KEYS[at])) else left = tonumber(ARGV.window) end
  if used >= tonumber(ARGV[at]) then return {words[at], format('%d', left)} end
end

for at = @KEYS.of_caller, last do
  if is_open[at] then call('INCR', KEYS[at]) else call('SET', KEYS[at], '1', 'PX', ARGV.window) end
end
return {'passed'}
