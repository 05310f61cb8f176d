-- Purpose: create an account and, if given, its owner.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them. `entry` is the audit entry; `email` is the owner's ('' = no owner), `owner` the record
--   (JSON)
-- Returns: {'created'} | {'exists'}
-- Cost: O(1); 4 or 5 calls
if call('EXISTS', KEYS.account) == 1 then return {'exists'} end

call('HSET', KEYS.account, 'id', ARGV.account_id, 'name', ARGV.name, 'plan', ARGV.plan, 'created_at',
  format('%d', now_ms), 'generation', '1', 'version', '1', 'live_audit_seq', '1')
if ARGV.email ~= '' then call('HSET', KEYS.users, ARGV.email, ARGV.owner) end
call('RPUSH', KEYS.audit_log, format('1 %d %s', now_ms, ARGV.entry))
return {'created'}
