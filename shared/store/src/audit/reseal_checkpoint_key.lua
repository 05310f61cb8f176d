-- Purpose: replace the sealed text of the checkpoint key by one under the newest master key, unless it has changed
--   meanwhile.
-- KEYS: as reseal_checkpoint_key.rs names them
-- ARGV: as reseal_checkpoint_key.rs names them. `old` and `new` are sealed texts
-- Returns: {'done'} | {'changed'} (it is not the old text; nothing changed)
-- Cost: O(1); 2 calls
if call('HGET', KEYS.store, ARGV.field) ~= ARGV.old then return {'changed'} end

call('HSET', KEYS.store, ARGV.field, ARGV.new)
return {'done'}
