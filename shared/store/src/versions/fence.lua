-- Purpose: a write without meaning. Waiting for replicas or the disk covers only writes of the same connection, and a
--   change that was already done was written by another one.
-- KEYS: as fence.rs names them
-- ARGV: none
-- Returns: {'written'}
-- Cost: O(1); 1 call
call('SET', KEYS.fence, '1')
return {'written'}
