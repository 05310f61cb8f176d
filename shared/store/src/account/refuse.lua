-- Purpose: list the accounts that are refused: no new records for those that use far more of the store than others,
--   nothing at all for those that lost writes. The list expires if it is not renewed.
-- KEYS: as refused.rs names them
-- ARGV: as refused.rs names them. `life` is in ms
-- Returns: {'named'}
-- Cost: O(accounts named); 1 call
call('SET', KEYS.refused, ARGV.list, 'PX', ARGV.life)
return {'named'}
