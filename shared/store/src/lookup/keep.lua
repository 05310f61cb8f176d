-- Purpose: make the look-up of a key or of a user last, once the record that it leads to is there. It is written in any case, so
--   that who waits until it is safe waits for this write; one that was announced and lost since is there again.
-- KEYS: 1 look-up
-- ARGV: 1 its owner
-- Returns: {'kept'} | {'taken', owner} (it is somebody else's; nothing happened)
-- Cost: O(1); 2 calls
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return {'taken', owner} end

redis.call('SET', KEYS[1], ARGV[1])
return {'kept'}
