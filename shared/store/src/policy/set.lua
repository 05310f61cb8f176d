-- Purpose: create a policy, or change fields of one, and apply it: an agent's own policy to the agent, the strictest of
--   the account-wide ones to the account.
-- KEYS: of a change, then as script.rs names them. `target` is the agent, or the hash of account-wide policies for one
-- ARGV: of a change, then as script.rs names them. `reach` is 'agent' or 'account'; `state` is 'new', or 'old' if the
--   policy must exist; `read_revision` is the revision whose values the entry has as previous ones ('0' for a new
--   policy); `expected` is for precondition.lua. `changes` come in threes: 'set' field value, or 'clear' field ''. Last: budgets
-- Returns: {'set', field, value, …} (the whole policy; nothing was written if it was so before)
--   | {'too_many'} | {'over_budget', kind} | {'no_account'}
--   | {'mismatch'} (it does not match `expected`; nothing changed)
--   | {'changed'} (the agent's policy, or its revision, is not the one that was read; nothing changed, read again)
-- Cost: O(log policies), and O(account-wide policies) for an account-wide one; 15 calls and two per field
local is_new = ARGV.state == 'new'
if is_new == (call('EXISTS', KEYS.policy) == 1) then return {'changed'} end
if ARGV.reach == 'agent' then
  local its_policy = call('HGET', KEYS.target, 'policy_id')
  if (its_policy or '') ~= (is_new and '' or ARGV.policy_id) then return {'changed'} end
elseif is_new and call('HLEN', KEYS.target) >= tonumber(ARGV.account_policies_max) then
  return {'too_many'}
end
local revision = not is_new and call('HGET', KEYS.policy, 'revision')
if is_unexpected(ARGV.expected, revision) then return {'mismatch'} end
revision = revision or '0'
local function whole_policy() return {'set', unpack(call('HGETALL', KEYS.policy))} end
if not is_new and has_fields(@KEYS.policy, @ARGV.changes, #ARGV) then return whole_policy() end
-- The entry has the values of this revision as previous ones.
if revision ~= ARGV.read_revision then return {'changed'} end
if is_new and is_full('policies', call('ZCARD', KEYS.policies)) then return over_budget('policies') end

change_fields(@KEYS.policy, @ARGV.changes, #ARGV)
if is_new then
  call('HSET', KEYS.policy, 'id', ARGV.policy_id, 'created_at', now)
  call('ZADD', KEYS.policies, now_ms, ARGV.policy_id)
end
call('HSET', KEYS.policy, 'updated_at', now, 'revision', format('%d', tonumber(revision) + 1))
local policy = call('HMGET', KEYS.policy, 'cap', 'run', 'day', 'month', 'transaction', 'approval', 'low_balance')
if ARGV.reach == 'agent' then
  for at = 2, 7 do policy[at] = policy[at] or '' end
  call('HSET', KEYS.target, 'policy_id', ARGV.policy_id, 'cap', policy[1], 'cap_run', policy[2], 'cap_day', policy[3],
    'cap_month', policy[4], 'cap_txn', policy[5], 'cap_approval', policy[6], 'cap_low', policy[7])
else
  for at = 2, 7 do policy[at] = policy[at] or '-' end
  call('HSET', KEYS.target, ARGV.policy_id, format('%s %s %s %s %s %s %s', unpack(policy)))
  write_strictest()
end
recorded()
return whole_policy()
