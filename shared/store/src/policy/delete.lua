-- Purpose: delete a policy. It applies from the next call on.
-- KEYS: of a change, then as script.rs names them. `target` is the agent, or the hash of account-wide policies for one
-- ARGV: of a change, then as script.rs names them. `reach` is 'agent' or 'account'
-- Returns: {'deleted'} | {'missing'} | {'no_account'}
-- Cost: O(log policies), and O(account-wide policies) for an account-wide one; up to 12 calls
if call('DEL', KEYS.policy) == 0 then return {'missing'} end
call('ZREM', KEYS.policies, ARGV.policy_id)
if ARGV.reach == 'agent' then
  call('HDEL', KEYS.target, 'policy_id', 'cap', 'cap_run', 'cap_day', 'cap_month', 'cap_txn', 'cap_approval',
    'cap_low')
else
  call('HDEL', KEYS.target, ARGV.policy_id)
  write_strictest()
end
recorded()
return {'deleted'}
