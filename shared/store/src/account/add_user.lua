-- Purpose: add a dashboard user to an account.
-- KEYS: 1 account record  2 live audit log  3 users of the account
-- ARGV: 1 mode ('live')  2 audit entry  3 e-mail  4 record (JSON)  5 most users an account can have
-- Returns: {'added'} | {'exists'} | {'too_many'} | {'no_account'}
-- Cost: O(1); 8 calls
if redis.call('HEXISTS', KEYS[3], ARGV[3]) == 1 then return {'exists'} end
if redis.call('HLEN', KEYS[3]) >= tonumber(ARGV[5]) then return {'too_many'} end

redis.call('HSET', KEYS[3], ARGV[3], ARGV[4])
recorded()
return {'added'}
