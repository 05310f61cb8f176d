-- Purpose: change the users that an e-mail leads to, if they are those that the caller saw.
-- KEYS: 1 look-up of the e-mail
-- ARGV: 1 what must be there ('' = nothing)  2 what is to be there ('' = nothing)
-- Returns: {'done'} | {'other', what is there}
-- Cost: O(1); 2 calls
local there = redis.call('GET', KEYS[1]) or ''
if there ~= ARGV[1] then return {'other', there} end

if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return {'done'}
