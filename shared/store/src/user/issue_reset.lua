-- Purpose: let a user set a new password once, with a token; an earlier token of the user no longer works.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `user` is the record; `life` is in ms
-- Returns: {'issued'} | {'changed'} (it is no longer the record of the user) | {'no_account'}
-- Cost: O(1); 7 calls
if redis.call('HGET', KEYS.users, ARGV.email) ~= ARGV.user then return {'changed'} end

redis.call('SET', KEYS.reset, ARGV.token_hash, 'PX', ARGV.life)
recorded()
return {'issued'}
