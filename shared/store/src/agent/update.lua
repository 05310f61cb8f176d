-- Purpose: change fields of an agent's wallet row.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `fields` are in threes: 'set' field value, or 'clear' field ''
-- Returns: {'updated'} (also if the fields had these values; nothing was written then) | {'missing'} (no wallet row)
--   | {'no_account'}
-- Cost: O(fields); 10 calls and two per field
if call('HEXISTS', KEYS.agent, 'wallet') == 0 then return {'missing'} end
if has_fields(@KEYS.agent, @ARGV.fields) then return {'updated'} end

local before = call('HSTRLEN', KEYS.agent, 'description')
change_fields(@KEYS.agent, @ARGV.fields)
count_kept_text(call('HSTRLEN', KEYS.agent, 'description') - before)
call('HSET', KEYS.agent, 'updated_at', now)
recorded()
return {'updated'}
