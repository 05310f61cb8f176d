-- Purpose: create a virtual key within the plan's number of active ones.
-- KEYS: 1 account record  2 audit log  3 active virtual keys  4 the agent's virtual keys  5 virtual key
-- ARGV: 1 mode  2 audit entry  3 key id  4 plan that the limit belongs to  5 most active keys ('' = unlimited)
--   6 and on: fields of the key and their values  last: budgets
-- Returns: {'created', created ms} | {'plan_limit'} | {'exists'} | {'other_plan', plan}
--   | {'over_budget', kind} | {'no_account'}
-- Cost: O(log keys of the account); 13 calls
local plan = redis.call('HGET', KEYS[1], 'plan')
if plan ~= ARGV[4] then return {'other_plan', plan} end
if redis.call('EXISTS', KEYS[5]) == 1 then return {'exists'} end
if ARGV[5] ~= '' and redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[5]) then return {'plan_limit'} end
if is_full('keys', redis.call('HGET', KEYS[1], 'key_seq') or '0') then return over_budget('keys') end

local number = redis.call('HINCRBY', KEYS[1], 'key_seq', 1)
redis.call('HSET', KEYS[5], 'created_at', now, unpack(ARGV, 6))
redis.call('ZADD', KEYS[3], number, ARGV[3])
redis.call('ZADD', KEYS[4], number, ARGV[3])
recorded()
return {'created', now}
