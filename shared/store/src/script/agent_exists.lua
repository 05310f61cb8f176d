-- Fragment: checks whether an agent exists (decision D22). KEYS[agent] is its record, KEYS[keys] its virtual keys,
-- which are live.
-- Needs the argument `mode`.
local function agent_exists(agent, keys)
  local known = call('HMGET', KEYS[agent], 'wallet', 'cap')
  if known[1] or known[2] then return true end
  for _, field in ipairs(call('HKEYS', KEYS[agent])) do
    if string.sub(field, 1, 6) == 'pk_id:' then return true end
  end
  return ARGV.mode == 'live' and call('ZCARD', KEYS[keys]) > 0
end

