-- Purpose: create an agent's wallet row, and with it the agent, within the plan's number of custom agents.
-- KEYS: of a change, then as script.rs names them. `agents` lists the agents with a wallet row; `place` is the place of
--   the wallet's number
-- ARGV: of a change, then as script.rs names them. `plan` is the plan whose limit applies ('' = no limit, whatever the
--   plan), `agents_max` '' = unlimited, `place` the value of the place. `fields` are those of the row. Last: budgets
-- Returns: {'created'} | {'tier_limit'} | {'exists'} | {'other_plan', plan} | {'over_budget', kind}
--   | {'taken'} (the number is in use; nothing changed, draw another) | {'no_account'}
-- Cost: O(log agents of the account); 14 calls
local plan = call('HGET', KEYS.account, 'plan')
if ARGV.plan ~= '' and plan ~= ARGV.plan then return {'other_plan', plan} end
if call('HEXISTS', KEYS.agent, 'wallet') == 1 then return {'exists'} end
if ARGV.agents_max ~= '' and call('ZCARD', KEYS.agents) >= tonumber(ARGV.agents_max) then return {'tier_limit'} end
if is_full('agents', call('ZCARD', KEYS.agents) + counted('closed_wallets')) then return over_budget('agents') end
if call('EXISTS', KEYS.place) == 1 then return {'taken'} end

call('SET', KEYS.place, ARGV.place)
call('HSET', KEYS.agent, 'balance', '0', 'created_at', now, 'updated_at', now, unpack(ARGV, @ARGV.fields))
call('ZADD', KEYS.agents, now_ms, ARGV.agent)
count_kept_text(call('HSTRLEN', KEYS.agent, 'description'))
recorded()
return {'created'}
