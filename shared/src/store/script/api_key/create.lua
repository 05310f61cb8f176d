-- Purpose: create an API key of an account.
-- KEYS: 1 account record  2 audit log  3 API key  4 API keys of the account
-- ARGV: 1 mode  2 audit entry  3 key id  4 most keys an account can have  5 and on: fields of the key and their values
-- Returns: {'created'} | {'exists'} | {'too_many'} | {'no_account'}
-- Cost: O(log keys of the account); 10 calls
if redis.call('EXISTS', KEYS[3]) == 1 then return {'exists'} end
if redis.call('ZCARD', KEYS[4]) >= tonumber(ARGV[4]) then return {'too_many'} end

redis.call('HSET', KEYS[3], 'id', ARGV[3], 'mode', ARGV[1], 'created_at', now, unpack(ARGV, 5))
redis.call('ZADD', KEYS[4], redis.call('HINCRBY', KEYS[1], 'key_seq', 1), ARGV[3])
recorded()
return {'created'}
