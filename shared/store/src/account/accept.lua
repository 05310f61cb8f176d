-- Purpose: accept an account whose version decreased because the store lost writes (decision D52). The higher
--   generation makes every edge forget the version it remembers. It includes the clock, since the increment of an
--   earlier accept may be lost too.
-- KEYS: of a change
-- ARGV: of a change
-- Returns: {'accepted'} | {'no_account'}
-- Cost: O(1); 6 calls
account_view[1] = format('%d', math.max(tonumber(account_view[1]) + 1, now_ms))
call('HSET', KEYS.account, 'generation', account_view[1])
recorded()
return {'accepted'}
