-- Purpose: delete a policy. It applies from the next call on.
-- KEYS: of a change, then as script.rs names them. `target` is the agent, or the hash of account-wide policies for one
-- ARGV: of a change, then as script.rs names them. `reach` is 'agent' or 'account'; `read_revision` is the revision
--   whose values the entry has as previous ones, or '' if it has none; `expected` is for precondition.lua
-- Returns: {'deleted'} | {'missing'} | {'mismatch'} (it does not match `expected`; nothing changed)
--   | {'changed'} (the revision is not the one that was read; nothing changed, read again) | {'no_account'}
-- Cost: O(log policies), and O(account-wide policies) for an account-wide one; up to 13 calls
local revision = call('HGET', KEYS.policy, 'revision')
if not revision then return {'missing'} end
if is_unexpected(ARGV.expected, revision) then return {'mismatch'} end
if ARGV.read_revision ~= '' and revision ~= ARGV.read_revision then return {'changed'} end
call('DEL', KEYS.policy)
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
