-- Purpose: change the plan of an account. It applies from the next call on.
-- KEYS: of a change
-- ARGV: of a change, then as script.rs names them. `expected` is the required current plan
-- Returns: {'set'} | {'same'} (nothing changed) | {'other_plan'} (the current plan is not `expected`) | {'no_account'}
-- Cost: O(1); 7 calls
local plan = call('HGET', KEYS.account, 'plan')
if plan ~= ARGV.expected then return {'other_plan'} end
if plan == ARGV.plan then return {'same'} end

call('HSET', KEYS.account, 'plan', ARGV.plan)
recorded()
return {'set'}
