-- Purpose: make the look-up of a key or of a user permanent, once its record exists. It is written in any case, so that
--   a caller who waits for durability waits for this write; an announced look-up that was lost meanwhile is restored.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them
-- Returns: {'kept'} | {'taken', owner} (it belongs to another owner; nothing changed)
-- Cost: O(1); 2 calls
local owner = call('GET', KEYS.lookup)
if owner and owner ~= ARGV.owner then return {'taken', owner} end

call('SET', KEYS.lookup, ARGV.owner)
return {'kept'}
