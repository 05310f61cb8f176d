-- Purpose: create a virtual key within the plan's limit of active keys.
-- KEYS: of a change, then as script.rs names them. `active_keys` are those of the account
-- ARGV: of a change, then as script.rs names them. `plan` is the plan with the limit `keys_max` ('' = unlimited). Last:
--   budgets
-- Returns: {'created', created ms} | {'plan_limit'} | {'exists'} | {'other_plan', plan}
--   | {'over_budget', kind} | {'no_account'}
-- Cost: O(log keys of the account); 13 calls
local plan = call('HGET', KEYS.account, 'plan')
if plan ~= ARGV.plan then return {'other_plan', plan} end
if call('EXISTS', KEYS.virtual_key) == 1 then return {'exists'} end
if ARGV.keys_max ~= '' and call('ZCARD', KEYS.active_keys) >= tonumber(ARGV.keys_max) then return {'plan_limit'} end
if is_full('keys', call('HGET', KEYS.account, 'key_seq') or '0') then return over_budget('keys') end

local number = call('HINCRBY', KEYS.account, 'key_seq', 1)
call('HSET', KEYS.virtual_key, 'created_at', now, unpack(ARGV, @ARGV.fields))
call('ZADD', KEYS.active_keys, number, ARGV.key_id)
call('ZADD', KEYS.agent_keys, number, ARGV.key_id)
recorded()
return {'created', now}
