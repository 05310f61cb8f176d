-- Purpose: create an account and, if given, its owner.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them. `entry` is the audit entry; `email` is the owner's ('' = no owner), `owner` the record
--   (JSON)
-- Returns: {'created'} | {'exists'}
-- Cost: O(1); 4 or 5 calls
if redis.call('EXISTS', KEYS.account) == 1 then return {'exists'} end

redis.call('HSET', KEYS.account, 'id', ARGV.account_id, 'name', ARGV.name, 'plan', ARGV.plan, 'created_at',
  string.format('%d', now_ms), 'generation', '1', 'version', '1', 'live_audit_seq', '1')
if ARGV.email ~= '' then redis.call('HSET', KEYS.users, ARGV.email, ARGV.owner) end
redis.call('RPUSH', KEYS.audit_log, string.format('1 %d %s', now_ms, ARGV.entry))
return {'created'}
