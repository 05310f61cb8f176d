-- Purpose: name the accounts that are refused: what makes records, since they take far more of the store than others, or all of
--   it, since they lost writes. The list ends by itself when nobody renews it.
-- KEYS: 1 refused accounts
-- ARGV: 1 the list  2 its life ms
-- Returns: {'named'}
-- Cost: O(accounts named); 1 call
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'named'}
