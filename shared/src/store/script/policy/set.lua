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
local policy = redis.call('HMGET', KEYS[3], 'cap', 'run', 'day', 'month')
local cap, run, day, month = policy[1], policy[2], policy[3], policy[4]
if ARGV[4] == 'agent' then
  redis.call('HSET', KEYS[5], 'policy_id', ARGV[3], 'cap', cap, 'cap_run', run or '', 'cap_day', day or '',
    'cap_month', month or '')
else
  redis.call('HSET', KEYS[5], ARGV[3], string.format('%s %s %s %s', cap, run or '-', day or '-', month or '-'))
  write_strictest()
end
recorded()
return {'set', unpack(redis.call('HGETALL', KEYS[3]))}
