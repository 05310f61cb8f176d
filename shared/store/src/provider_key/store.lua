-- Purpose: store an agent's key for a provider, in place of the one it had; the agent comes into being with it.
-- KEYS: 1 account record  2 audit log  3 agent  4 agents with a provider key
-- ARGV: 1 mode  2 audit entry  3 field of the key's id  4 most providers an agent can have keys for
--   5 agent id  6 field of the time  7 and on: the other fields of the key and their values  last: budgets
-- Returns: {'stored', created ms} | {'too_many'} | {'over_budget', kind} | {'no_account'}
-- Cost: O(fields of the agent); 11 calls
if redis.call('HEXISTS', KEYS[3], ARGV[3]) == 0 then
  local providers = 0
  for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
    if string.sub(field, 1, 6) == 'pk_id:' then providers = providers + 1 end
  end
  if providers >= tonumber(ARGV[4]) then return {'too_many'} end
  local is_known = redis.call('SISMEMBER', KEYS[4], ARGV[5]) == 1
  if not is_known and is_full('provider_keys', redis.call('SCARD', KEYS[4])) then return over_budget('provider_keys') end
end

redis.call('HSET', KEYS[3], ARGV[6], now, unpack(ARGV, 7))
redis.call('SADD', KEYS[4], ARGV[5])
recorded()
return {'stored', now}
