-- Purpose: read a price table that waits for the archive, unless it is longer than any that an edge writes.
-- KEYS: as tables.rs names them
-- ARGV: as tables.rs names them
-- Returns: {'text', text} | {'none'} | {'too_long'}
-- Cost: O(text_bytes_max); 2 calls
if call('HSTRLEN', KEYS.tables, ARGV.version) > tonumber(ARGV.text_bytes_max) then return {'too_long'} end
local text = call('HGET', KEYS.tables, ARGV.version)
if not text then return {'none'} end
return {'text', text}
