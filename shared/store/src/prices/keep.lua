-- Purpose: offer a price table to the archive, which takes it from here (decision D48).
-- KEYS: as tables.rs names them
-- ARGV: as tables.rs names them
-- Returns: {'done'} | {'full'} (nothing changed)
-- Cost: O(tables_max + length of the text); 3 calls
if call('HEXISTS', KEYS.tables, ARGV.version) == 0
  and #call('HKEYS', KEYS.tables) >= tonumber(ARGV.tables_max) then
  return {'full'}
end
call('HSET', KEYS.tables, ARGV.version, ARGV.text)
return {'done'}
