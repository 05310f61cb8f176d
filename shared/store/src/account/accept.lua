-- Purpose: accept an account whose version fell because the store lost writes (decision D52): a higher generation makes
--   every edge forget the version it remembers. The clock is in it, since the raise of an earlier accept may be lost too.
-- KEYS: 1 account record  2 live audit log
-- ARGV: 1 mode ('live')  2 audit entry
-- Returns: {'accepted'} | {'no_account'}
-- Cost: O(1); 6 calls
account_view[1] = string.format('%d', math.max(tonumber(account_view[1]) + 1, now_ms))
redis.call('HSET', KEYS[1], 'generation', account_view[1])
recorded()
return {'accepted'}
