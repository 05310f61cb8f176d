-- Purpose: freeze or unfreeze an agent. It applies from the next call on (specification, states of an agent; decision
--   D22).
-- KEYS: of a change, then as freeze.rs names them
-- ARGV: of a change, then as freeze.rs names them. `change` is 'freeze' | 'lift', `authority` 'user' | 'operator'
-- Returns: {'done'} | {'already'} | {'not_permitted'} (frozen by the operator, lifted by a user) | {'not_found'}
--   | {'no_account'}
-- Cost: O(fields of the agent + log frozen agents); up to 12 calls
if not agent_exists(@KEYS.agent, @KEYS.agent_keys) then return {'not_found'} end

local frozen, who = call('HGET', KEYS.agent, 'frozen'), ARGV.authority
if ARGV.change == 'freeze' then
  if frozen == 'operator' or frozen == who then return {'already'} end
  call('HSET', KEYS.agent, 'frozen', who)
  call('ZADD', KEYS.frozen_agents, 'NX', now_ms, ARGV.agent)
else
  if not frozen then return {'already'} end
  if frozen == 'operator' and who ~= 'operator' then return {'not_permitted'} end
  call('HDEL', KEYS.agent, 'frozen')
  call('ZREM', KEYS.frozen_agents, ARGV.agent)
end
if call('HEXISTS', KEYS.agent, 'wallet') == 1 then call('HSET', KEYS.agent, 'updated_at', now) end
recorded()
return {'done'}
