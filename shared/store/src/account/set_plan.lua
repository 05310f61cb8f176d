-- Purpose: put an account on another plan; it binds the next call.
-- KEYS: of a change
-- ARGV: of a change, then as script.rs names them
-- Returns: {'set'} | {'same'} (nothing changed) | {'no_account'}
-- Cost: O(1); 7 calls
if redis.call('HGET', KEYS.account, 'plan') == ARGV.plan then return {'same'} end

redis.call('HSET', KEYS.account, 'plan', ARGV.plan)
recorded()
return {'set'}
