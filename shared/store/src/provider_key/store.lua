-- Purpose: store an agent's key for a provider, replacing an existing one. Creates the agent if necessary.
-- KEYS: of a change, then as provider_key.rs names them. `sealed_agents` lists the agents with a provider key
-- ARGV: of a change, then as provider_key.rs names them. `id_field`, `sealed_field` and `created_field` are the fields
--   with the key's id, sealed text and time, `fields` all but the time and their values. Last: budgets
-- Returns: {'stored', created ms} | {'too_many'} | {'over_budget', kind} | {'no_account'}
-- Cost: O(fields of the agent); 13 calls
local is_new = call('HEXISTS', KEYS.agent, ARGV.id_field) == 0
if is_new then
  local providers = 0
  for _, field in ipairs(call('HKEYS', KEYS.agent)) do
    if string.sub(field, 1, 6) == 'pk_id:' then providers = providers + 1 end
  end
  if providers >= tonumber(ARGV.providers_max) then return {'too_many'} end
  local is_known = call('SISMEMBER', KEYS.sealed_agents, ARGV.agent_id) == 1
  if not is_known and is_full('provider_keys', call('SCARD', KEYS.sealed_agents)) then return over_budget('provider_keys') end
end

local before = is_new and -KEY_BYTES or call('HSTRLEN', KEYS.agent, ARGV.sealed_field)
call('HSET', KEYS.agent, ARGV.created_field, now, unpack(ARGV, @ARGV.fields))
count_kept_text(call('HSTRLEN', KEYS.agent, ARGV.sealed_field) - before)
call('SADD', KEYS.sealed_agents, ARGV.agent_id)
recorded()
return {'stored', now}
