-- Purpose: delete an agent: its wallet row, policy, provider keys and virtual keys. Its counters stay, so that an agent
--   of the same id made later does not start with a fresh budget; so does a freeze.
-- KEYS: 1 account record  2 audit log  3 agent  4 agents with a wallet row  5 policies  6 the agent's policy (any key when
--   it has none)  7 active virtual keys  8 the agent's virtual keys  9 agents with a provider key  10 and on: the records
--   of the virtual keys. Virtual and provider keys are live: in test mode 7 to 9 are not touched.
-- ARGV: 1 mode  2 audit entry  3 agent id  4 policy id ('' = none)
-- Returns: {'deleted'} | {'missing'} (no wallet row) | {'holds_money'} | {'no_account'}
--   | {'changed'} (policy or virtual keys are others than the caller saw; nothing happened, look again)
-- Cost: O(fields of the agent + its virtual keys, revoked ones included); 13 calls and three a virtual key
local row = redis.call('HMGET', KEYS[3], 'wallet', 'balance', 'policy_id')
if not row[1] then return {'missing'} end
if row[2] ~= '0' then return {'holds_money'} end
if (row[3] or '') ~= ARGV[4] then return {'changed'} end
local virtual_keys = {}
if ARGV[1] == 'live' then virtual_keys = redis.call('ZRANGE', KEYS[8], 0, -1) end
if #virtual_keys ~= #KEYS - 9 then return {'changed'} end

for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
  local stays = field == 'frozen' or field == 'slot' or string.match(field, '^[dm]%d+$')
  if not stays then redis.call('HDEL', KEYS[3], field) end
end
for at, id in ipairs(virtual_keys) do
  redis.call('ZREM', KEYS[7], id)
  redis.call('ZREM', KEYS[8], id)
  redis.call('DEL', KEYS[9 + at])
end
if ARGV[1] == 'live' then redis.call('SREM', KEYS[9], ARGV[3]) end
if ARGV[4] ~= '' then
  redis.call('DEL', KEYS[6])
  redis.call('ZREM', KEYS[5], ARGV[4])
end
redis.call('ZREM', KEYS[4], ARGV[3])
recorded()
return {'deleted'}
