-- Purpose: add a member to a set outside the buckets, before the record that it names. It is written in any case, so that who
--   waits until it is safe waits for this write.
-- KEYS: 1 set
-- ARGV: 1 member
-- Returns: {'noted'}
-- Cost: O(1); 2 calls
redis.call('SREM', KEYS[1], ARGV[1])
redis.call('SADD', KEYS[1], ARGV[1])
return {'noted'}
