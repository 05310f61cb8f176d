-- Purpose: make the look-up of a key or of a user last, once the record that it leads to is there. It is written in any
--   case, so that who waits until it is safe waits for this write; one that was announced and lost since is there
--   again.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them
-- Returns: {'kept'} | {'taken', owner} (it is somebody else's; nothing happened)
-- Cost: O(1); 2 calls
local owner = redis.call('GET', KEYS.lookup)
if owner and owner ~= ARGV.owner then return {'taken', owner} end

redis.call('SET', KEYS.lookup, ARGV.owner)
return {'kept'}
