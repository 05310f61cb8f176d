-- Purpose: reserve an e-mail for a new user, for the time being; it is made to last when the user is there.
-- KEYS: 1 look-up of the e-mail
-- ARGV: 1 what must be there ('' = nothing; else an owner that is no longer there)  2 the new owner  3 life in ms
-- Returns: {'claimed'} | {'taken', owner, 'lasting' or 'for now'}
-- Cost: O(1); at most 3 calls
local owner = redis.call('GET', KEYS[1])
local lasting = redis.call('PTTL', KEYS[1]) == -1
if (owner or '') ~= ARGV[1] or (owner and not lasting) then
  return {'taken', owner or '', lasting and 'lasting' or 'for now'}
end

redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return {'claimed'}
