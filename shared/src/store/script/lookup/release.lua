-- Purpose: free the e-mail of a user who is gone, unless it has another owner meanwhile.
-- KEYS: 1 look-up of the e-mail
-- ARGV: 1 its owner
-- Returns: {'released'} | {'other'}
-- Cost: O(1); 2 calls
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'other'} end

redis.call('DEL', KEYS[1])
return {'released'}
