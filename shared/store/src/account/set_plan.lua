-- Purpose: put an account on another plan; it binds the next call.
-- KEYS: 1 account record  2 live audit log
-- ARGV: 1 mode ('live')  2 audit entry  3 plan
-- Returns: {'set'} | {'same'} (nothing changed) | {'no_account'}
-- Cost: O(1); 7 calls
if redis.call('HGET', KEYS[1], 'plan') == ARGV[3] then return {'same'} end

redis.call('HSET', KEYS[1], 'plan', ARGV[3])
recorded()
return {'set'}
