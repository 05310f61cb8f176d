-- Purpose: create an agent's wallet row, and with it the agent, within the plan's number of custom agents.
-- KEYS: 1 account record  2 audit log  3 agent  4 agents with a wallet row  5 place of the wallet's number
-- ARGV: 1 mode  2 audit entry  3 agent id  4 plan that the limit belongs to ('' = no limit, whatever the plan)
--   5 most agents ('' = unlimited)  6 what the place says  7 and on: fields of the row and their values  last: budgets
-- Returns: {'created'} | {'tier_limit'} | {'exists'} | {'other_plan', plan} | {'over_budget', kind}
--   | {'taken'} (the number has a place; nothing happened, draw another) | {'no_account'}
-- Cost: O(log agents of the account); 12 calls
local plan = redis.call('HGET', KEYS[1], 'plan')
if ARGV[4] ~= '' and plan ~= ARGV[4] then return {'other_plan', plan} end
if redis.call('HEXISTS', KEYS[3], 'wallet') == 1 then return {'exists'} end
if ARGV[5] ~= '' and redis.call('ZCARD', KEYS[4]) >= tonumber(ARGV[5]) then return {'tier_limit'} end
if is_full('agents', redis.call('ZCARD', KEYS[4]) + counted('closed_wallets')) then return over_budget('agents') end
if redis.call('EXISTS', KEYS[5]) == 1 then return {'taken'} end

redis.call('SET', KEYS[5], ARGV[6])
redis.call('HSET', KEYS[3], 'balance', '0', 'created_at', now, 'updated_at', now, unpack(ARGV, 7))
redis.call('ZADD', KEYS[4], now_ms, ARGV[3])
recorded()
return {'created'}
