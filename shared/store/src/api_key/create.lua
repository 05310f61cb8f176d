-- Purpose: create an API key of an account. Where the account has as many as it can have, a revoked one makes room.
-- KEYS: 1 account record  2 audit log  3 API key  4 API keys of the account  5 the revoked key that goes if there must one
--   (any key when ARGV[5] is '')
-- ARGV: 1 mode  2 audit entry  3 key id  4 most keys an account can have  5 id of the revoked key ('' = none)
--   6 and on: fields of the key and their values  last: budgets
-- Returns: {'created'} | {'exists'} | {'too_many'} (and the key in 5 is not a revoked one, or not there any more)
--   | {'over_budget', kind} | {'no_account'}
-- Cost: O(log keys of the account); up to 14 calls
if redis.call('EXISTS', KEYS[3]) == 1 then return {'exists'} end
local full = redis.call('ZCARD', KEYS[4]) >= tonumber(ARGV[4])
if full and (ARGV[5] == '' or not redis.call('HGET', KEYS[5], 'revoked_at')) then return {'too_many'} end
if is_full('keys', redis.call('HGET', KEYS[1], 'key_seq') or '0') then return over_budget('keys') end

local words
if full then
  redis.call('DEL', KEYS[5])
  redis.call('ZREM', KEYS[4], ARGV[5])
  words = string.format('dropped_key_id=%s', ARGV[5])
end
redis.call('HSET', KEYS[3], 'id', ARGV[3], 'mode', ARGV[1], 'created_at', now, unpack(ARGV, 6))
redis.call('ZADD', KEYS[4], redis.call('HINCRBY', KEYS[1], 'key_seq', 1), ARGV[3])
recorded(words)
return {'created'}
