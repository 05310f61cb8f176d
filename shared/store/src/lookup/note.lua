-- Purpose: add a member to a set outside the buckets, before its record is written. It is written in any case, so that
--   a caller who waits for durability waits for this write.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them
-- Returns: {'noted'}
-- Cost: O(1); 2 calls
call('SREM', KEYS.set, ARGV.member)
call('SADD', KEYS.set, ARGV.member)
return {'noted'}
