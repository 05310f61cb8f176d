-- Purpose: remember that a share of a limit was reached in a period, once, however many servers look.
-- KEYS: as notice.rs names them
-- ARGV: as notice.rs names them: the field, and until when the notices of the period are kept, in seconds since 1970
-- Returns: {'noticed'} | {'known'} (it was noticed before)
-- Cost: O(1); up to 3 calls
if call('HSETNX', KEYS.notices, ARGV.field, format('%d', now_ms)) == 0 then return {'known'} end
call('EXPIREAT', KEYS.notices, ARGV.kept_until)
return {'noticed'}
