-- Purpose: put the key of checkpoints that was sealed again under the newest master key in the place of its old sealed
--   text, unless somebody else did so.
-- KEYS: as reseal_checkpoint_key.rs names them
-- ARGV: as reseal_checkpoint_key.rs names them. `old` and `new` are sealed texts
-- Returns: {'done'} | {'changed'} (it is no longer the old text; nothing changed)
-- Cost: O(1); 2 calls
if redis.call('HGET', KEYS.store, ARGV.field) ~= ARGV.old then return {'changed'} end

redis.call('HSET', KEYS.store, ARGV.field, ARGV.new)
return {'done'}
