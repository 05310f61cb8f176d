-- Purpose: replace the imported prices, unless somebody else did so since they were read.
-- KEYS: 1 imported prices
-- ARGV: 1 text that was read ('' = none)  2 new text
-- Returns: {'done'} | {'changed'} (nothing changed)
-- Cost: O(length of the texts); 2 calls
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return {'changed'} end
redis.call('SET', KEYS[1], ARGV[2])
return {'done'}
