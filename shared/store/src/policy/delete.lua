-- Purpose: delete a policy and end its effect.
-- KEYS: 1 account record  2 audit log  3 policy  4 policies  5 agent, or the account-wide policies when it is one
-- ARGV: 1 mode  2 audit entry  3 policy id  4 'agent' or 'account'
-- Returns: {'deleted'} | {'missing'} | {'no_account'}
-- Cost: O(log policies), and O(account-wide policies) for one of these; up to 12 calls
if redis.call('DEL', KEYS[3]) == 0 then return {'missing'} end
redis.call('ZREM', KEYS[4], ARGV[3])
if ARGV[4] == 'agent' then
  redis.call('HDEL', KEYS[5], 'policy_id', 'cap', 'cap_run', 'cap_day', 'cap_month', 'cap_txn', 'cap_approval',
    'cap_low')
else
  redis.call('HDEL', KEYS[5], ARGV[3])
  write_strictest()
end
recorded()
return {'deleted'}
