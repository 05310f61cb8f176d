-- Purpose: create a policy, or change fields of one, and put it into effect: an agent's own policy on the agent, the
--   strictest of the account-wide ones on the account.
-- KEYS: 1 account record  2 audit log  3 policy  4 policies  5 agent, or the account-wide policies when it is one
-- ARGV: 1 mode  2 audit entry  3 policy id  4 'agent' or 'account'  5 'new', or 'old' when the policy must exist
--   6 most account-wide policies  7 '' | 'none' (there must be no policy yet) | 'any' (there must be one) | the revisions, each
--   between spaces, of which it must have one  8 and on, in threes: 'set' field value, or 'clear' field ''  last: budgets
-- Returns: {'set', field, value, …} (the whole policy) | {'too_many'} | {'over_budget', kind} | {'no_account'}
--   | {'mismatch'} (it is not as ARGV[7] says; nothing happened)
--   | {'changed'} (the agent's policy is another than the caller saw; nothing happened, look again)
-- Cost: O(log policies), and O(account-wide policies) for one of these; 15 calls and one a field
local is_new = ARGV[5] == 'new'
if is_new == (redis.call('EXISTS', KEYS[3]) == 1) then return {'changed'} end
if ARGV[4] == 'agent' then
  local its_policy = redis.call('HGET', KEYS[5], 'policy_id')
  if (its_policy or '') ~= (is_new and '' or ARGV[3]) then return {'changed'} end
elseif is_new and redis.call('HLEN', KEYS[5]) >= tonumber(ARGV[6]) then
  return {'too_many'}
end
-- A policy that was last set by an earlier version counts as its first revision.
local revision = is_new and '0' or redis.call('HGET', KEYS[3], 'revision') or '1'
local expected = ARGV[7]
if expected == 'none' then
  if not is_new then return {'mismatch'} end
elseif expected ~= '' then
  if is_new then return {'mismatch'} end
  if expected ~= 'any' and not string.find(expected, string.format(' %s ', revision), 1, true) then return {'mismatch'} end
end
if is_new and is_full('policies', redis.call('ZCARD', KEYS[4])) then return over_budget('policies') end

change_fields(3, 8)
if is_new then
  redis.call('HSET', KEYS[3], 'id', ARGV[3], 'created_at', now)
  redis.call('ZADD', KEYS[4], now_ms, ARGV[3])
end
redis.call('HSET', KEYS[3], 'updated_at', now, 'revision', string.format('%d', tonumber(revision) + 1))
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
