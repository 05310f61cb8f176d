-- Purpose: let a user set a new password once, with a token; an earlier token of the user no longer works.
-- KEYS: 1 account record  2 live audit log  3 users  4 reset of the user
-- ARGV: 1 mode ('live')  2 audit entry  3 e-mail  4 record of the user  5 hash of the token  6 life in ms
-- Returns: {'issued'} | {'changed'} (it is no longer the record of the user) | {'no_account'}
-- Cost: O(1); 7 calls
if redis.call('HGET', KEYS[3], ARGV[3]) ~= ARGV[4] then return {'changed'} end

redis.call('SET', KEYS[4], ARGV[5], 'PX', ARGV[6])
recorded()
return {'issued'}
