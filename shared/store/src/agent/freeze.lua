-- Purpose: freeze or unfreeze an agent; it binds the next call (specification, states of an agent; decision D22).
-- KEYS: 1 account record  2 audit log  3 agent  4 virtual keys of the agent  5 frozen agents
-- ARGV: 1 mode  2 audit entry  3 'freeze' | 'lift'  4 'user' | 'operator'  5 agent id
-- Returns: {'done'} | {'already'} | {'not_permitted'} (frozen by the operator, lifted by a user) | {'not_found'}
--   | {'no_account'}
-- Cost: O(fields of the agent + log frozen agents); up to 12 calls
if not agent_exists(3, 4) then return {'not_found'} end

local frozen, who = redis.call('HGET', KEYS[3], 'frozen'), ARGV[4]
if ARGV[3] == 'freeze' then
  if frozen == 'operator' or frozen == who then return {'already'} end
  redis.call('HSET', KEYS[3], 'frozen', who)
  redis.call('ZADD', KEYS[5], 'NX', now_ms, ARGV[5])
else
  if not frozen then return {'already'} end
  if frozen == 'operator' and who ~= 'operator' then return {'not_permitted'} end
  redis.call('HDEL', KEYS[3], 'frozen')
  redis.call('ZREM', KEYS[5], ARGV[5])
end
if redis.call('HEXISTS', KEYS[3], 'wallet') == 1 then redis.call('HSET', KEYS[3], 'updated_at', now) end
recorded()
return {'done'}
