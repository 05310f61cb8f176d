-- Purpose: add a dashboard user to an account.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `user` is the record (JSON)
-- Returns: {'added'} | {'exists'} | {'too_many'} | {'no_account'}
-- Cost: O(1); 8 calls
if call('HEXISTS', KEYS.users, ARGV.email) == 1 then return {'exists'} end
if call('HLEN', KEYS.users) >= tonumber(ARGV.users_max) then return {'too_many'} end

call('HSET', KEYS.users, ARGV.email, ARGV.user)
recorded()
return {'added'}
