-- Purpose: record once that a share of a limit was reached in a period, however many servers check.
-- KEYS: as notice.rs names them
-- ARGV: as notice.rs names them: the field, and the expiry of the period's notices, in seconds since 1970
-- Returns: {'noticed'} | {'known'} (it was recorded before)
-- Cost: O(1); up to 3 calls
if call('HSETNX', KEYS.notices, ARGV.field, format('%d', now_ms)) == 0 then return {'known'} end
call('EXPIREAT', KEYS.notices, ARGV.kept_until)
return {'noticed'}
