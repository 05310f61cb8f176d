-- Purpose: issue a token with which a user can set a new password once; an earlier token of the user becomes invalid.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `user` is the record; `life` is in ms
-- Returns: {'issued'} | {'changed'} (this is not the user's record any more) | {'no_account'}
-- Cost: O(1); 7 calls
if call('HGET', KEYS.users, ARGV.email) ~= ARGV.user then return {'changed'} end

call('SET', KEYS.reset, ARGV.token_hash, 'PX', ARGV.life)
recorded()
return {'issued'}
