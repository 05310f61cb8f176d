-- Purpose: list the price tables that wait for the archive, at most tables_max. Fields that no edge writes, by the form
--   of the version or the length of the text, are only counted: their names and texts may have any length.
-- KEYS: as tables.rs names them
-- ARGV: as tables.rs names them. `remove` is '1' if those fields are to be removed
-- Returns: {'offered', number of those fields, start of the first one's name, version …}
-- Cost: O(tables_max + length of the names); 1 call and 2 per field
local digits, bytes_max = tonumber(ARGV.version_digits), tonumber(ARGV.text_bytes_max)
local versions, others, first = {}, 0, ''
for _, version in ipairs(call('HRANDFIELD', KEYS.tables, ARGV.tables_max)) do
  local is_version = #version == digits and not string.find(version, '[^0-9a-f]')
  if is_version and call('HSTRLEN', KEYS.tables, version) <= bytes_max then
    table.insert(versions, version)
  else
    if others == 0 then first = string.gsub(string.sub(version, 1, ARGV.shown_bytes), '[^%w%-_]', '?') end
    others = others + 1
    if ARGV.remove == '1' then call('HDEL', KEYS.tables, version) end
  end
end
return {'offered', format('%d', others), first, unpack(versions)}
