-- Purpose: change fields of an agent's wallet row.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `fields` are in threes, 'set' field value, or 'clear' field '': the
--   `changed` changes, then the values that the fields were read with, or none if the entry has no previous ones
-- Returns: {'updated'} (also if the fields had these values; nothing was written then) | {'missing'} (no wallet row)
--   | {'changed'} (the values are not those that were read; nothing changed, read again) | {'no_account'}
-- Cost: O(fields); 10 calls and three per field
if call('HEXISTS', KEYS.agent, 'wallet') == 0 then return {'missing'} end
local read = @ARGV.fields + 3 * tonumber(ARGV.changed)
if has_fields(@KEYS.agent, @ARGV.fields, read - 1) then return {'updated'} end
if not has_fields(@KEYS.agent, read, #ARGV) then return {'changed'} end

local length = call('HSTRLEN', KEYS.agent, 'description')
change_fields(@KEYS.agent, @ARGV.fields, read - 1)
count_kept_text(call('HSTRLEN', KEYS.agent, 'description') - length)
call('HSET', KEYS.agent, 'updated_at', now)
recorded()
return {'updated'}
