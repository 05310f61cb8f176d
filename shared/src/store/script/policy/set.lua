-- Purpose: create a policy, or change fields of one, and put it into effect: an agent's own policy on the agent, the
--   strictest of the account-wide ones on the account.
-- KEYS: 1 account record  2 audit log  3 policy  4 policies  5 agent, or the account-wide policies when it is one
-- ARGV: 1 mode  2 audit entry  3 policy id  4 'agent' or 'account'  5 'new', or 'old' when the policy must exist
--   6 most account-wide policies  7 and on, in threes: 'set' field value, or 'clear' field ''
-- Returns: {'set', field, value, …} (the whole policy) | {'too_many'} | {'no_account'}
--   | {'changed'} (the agent's policy is another than the caller saw; nothing happened, look again)
-- Cost: O(log policies), and O(account-wide policies) for one of these; 12 calls and one a field
local is_new = ARGV[5] == 'new'
if is_new == (redis.call('EXISTS', KEYS[3]) == 1) then return {'changed'} end
if ARGV[4] == 'agent' then
  local its_policy = redis.call('HGET', KEYS[5], 'policy_id')
  if (its_policy or '') ~= (is_new and '' or ARGV[3]) then return {'changed'} end
elseif is_new and redis.call('HLEN', KEYS[5]) >= tonumber(ARGV[6]) then
  return {'too_many'}
end

change_fields(3, 7)
if is_new then
  redis.call('HSET', KEYS[3], 'id', ARGV[3], 'created_at', now)
  redis.call('ZADD', KEYS[4], now_ms, ARGV[3])
end
redis.call('HSET', KEYS[3], 'updated_at', now)
local policy = redis.call('HMGET', KEYS[3], 'cap', 'run', 'day', 'month', 'transaction', 'approval', 'low_balance')
if ARGV[4] == 'agent' then
  for at = 2, 7 do policy[at] = policy[at] or '' end
  redis.call('HSET', KEYS[5], 'policy_id', ARGV[3], 'cap', policy[1], 'cap_run', policy[2], 'cap_day', policy[3],
    'cap_month', policy[4], 'cap_txn', policy[5], 'cap_approval', policy[6], 'cap_low', policy[7])
else
  for at = 2, 7 do policy[at] = policy[at] or '-' end
  redis.call('HSET', KEYS[5], ARGV[3], string.format('%s %s %s %s %s %s %s', unpack(policy)))
  write_strictest()
end
recorded()
return {'set', unpack(redis.call('HGETALL', KEYS[3]))}
