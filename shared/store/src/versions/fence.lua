-- Purpose: a write that nobody reads. What waits for replicas or for the disk speaks of what its own connection wrote,
--   and what was found done before was written by another.
-- KEYS: as fence.rs names them
-- ARGV: none
-- Returns: {'written'}
-- Cost: O(1); 1 call
redis.call('SET', KEYS.fence, '1')
return {'written'}
