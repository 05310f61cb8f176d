-- Purpose: delete an agent: its wallet row, policy, provider keys and virtual keys. Its wallet is closed and stays known
--   by number and id, with its transactions. Its counters stay, so that an agent of the same id made later does not start
--   with a fresh budget; so does a freeze.
-- KEYS: 1 account record  2 audit log  3 agent  4 agents with a wallet row  5 policies  6 the agent's policy (any key when
--   it has none)  7 active virtual keys  8 the agent's virtual keys  9 agents with a provider key  10 what is left of the
--   wallet  11 open escrows of the agent  12 to 19 the wallet's lists of transactions  20 to 27 the same lists of the closed
--   wallet  28 and on: the records of the virtual keys. Virtual and provider keys are live: in test mode 7 to 9 are not
--   touched.
-- ARGV: 1 mode  2 audit entry  3 agent id  4 policy id ('' = none)  5 number of the wallet
-- Returns: {'deleted'} | {'missing'} (no wallet row) | {'holds_money'} (balance or pending deposits) | {'open_escrows'}
--   | {'no_account'} | {'changed'} (policy, wallet or virtual keys are others than the caller saw; nothing happened, look
--   again)
-- Cost: O(fields of the agent + its virtual keys, of which few are revoked: virtual_key/forget.lua takes away the others);
--   31 calls, one a field and three a virtual key
local LISTS, FIRST_KEY = 8, 27
local row = redis.call('HMGET', KEYS[3], 'wallet', 'balance', 'policy_id', 'pending', 'wallet_number', 'name', 'created_at')
if not row[1] then return {'missing'} end
if row[2] ~= '0' or (row[4] or '0') ~= '0' then return {'holds_money'} end
if redis.call('SCARD', KEYS[11]) > 0 then return {'open_escrows'} end
if (row[3] or '') ~= ARGV[4] or row[5] ~= ARGV[5] then return {'changed'} end
local virtual_keys = {}
-- One more than the caller saw is enough to see that there are others.
if ARGV[1] == 'live' then virtual_keys = redis.call('ZRANGE', KEYS[8], 0, #KEYS - FIRST_KEY) end
if #virtual_keys ~= #KEYS - FIRST_KEY then return {'changed'} end

redis.call('HSET', KEYS[10], 'wallet_number', row[5], 'wallet', row[1], 'name', row[6], 'balance', '0', 'created_at', row[7],
  'updated_at', now, 'closed_at', now, 'agent', ARGV[3])
for list = 12, 11 + LISTS do
  local closed = KEYS[list + LISTS]
  if redis.call('EXISTS', KEYS[list]) == 1 then redis.call('RENAME', KEYS[list], closed) end
end
for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
  local stays = field == 'frozen' or field == 'slot' or field == 'held' or string.match(field, '^[dmw]%d+$')
  if not stays then redis.call('HDEL', KEYS[3], field) end
end
for at, id in ipairs(virtual_keys) do
  redis.call('ZREM', KEYS[7], id)
  redis.call('ZREM', KEYS[8], id)
  redis.call('DEL', KEYS[FIRST_KEY + at])
end
if ARGV[1] == 'live' then redis.call('SREM', KEYS[9], ARGV[3]) end
if ARGV[4] ~= '' then
  redis.call('DEL', KEYS[6])
  redis.call('ZREM', KEYS[5], ARGV[4])
end
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('HINCRBY', KEYS[1], string.format('%s_closed_wallets', ARGV[1]), 1)
recorded()
return {'deleted'}
