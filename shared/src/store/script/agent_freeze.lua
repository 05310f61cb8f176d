-- Purpose: freeze or unfreeze an agent; it binds the next call (specification, states of an agent; decision D22).
-- KEYS: 1 account record  2 audit log  3 agent  4 virtual keys of the agent
-- ARGV: 1 mode  2 audit entry  3 'freeze' | 'lift'  4 'user' | 'operator'
-- Returns: {'done'} | {'already'} | {'not_permitted'} (frozen by the operator, lifted by a user) | {'not_found'}
--   | {'no_account'}
-- Cost: O(fields of the agent); 9 calls
local agent = redis.call('HMGET', KEYS[3], 'frozen', 'wallet', 'cap')
local exists = agent[2] or agent[3]
if not exists then
  for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
    if string.sub(field, 1, 6) == 'pk_id:' then exists = true end
  end
end
-- Virtual keys are live.
if not exists and ARGV[1] == 'live' then exists = redis.call('ZCARD', KEYS[4]) > 0 end
if not exists then return {'not_found'} end

local frozen, who = agent[1], ARGV[4]
if ARGV[3] == 'freeze' then
  if frozen == 'operator' or frozen == who then return {'already'} end
  redis.call('HSET', KEYS[3], 'frozen', who)
else
  if not frozen then return {'already'} end
  if frozen == 'operator' and who ~= 'operator' then return {'not_permitted'} end
  redis.call('HDEL', KEYS[3], 'frozen')
end
recorded()
return {'done'}
