-- Purpose: name the accounts that are refused: what makes records, since they take far more of the store than others,
--   or all of it, since they lost writes. The list ends by itself when nobody renews it.
-- KEYS: as refused.rs names them
-- ARGV: as refused.rs names them. `life` is in ms
-- Returns: {'named'}
-- Cost: O(accounts named); 1 call
redis.call('SET', KEYS.refused, ARGV.list, 'PX', ARGV.life)
return {'named'}
