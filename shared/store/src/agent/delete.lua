-- Purpose: delete an agent: its wallet row, policy, provider keys and virtual keys. Its wallet is closed and stays
--   known by number and id, with its transactions. Its counters stay, so that an agent of the same id made later does
--   not start with a fresh budget; so does a freeze.
-- KEYS: of a change, then as script.rs names them. `agents` are those with a wallet row, `sealed_agents` those with a
--   provider key; `policy` is any key when the agent has none. `closed_wallet` is what is left of the wallet, `lists`
--   its lists of transactions and `closed_lists` the same lists of the closed wallet. `virtual_keys` are the records of
--   the agent's virtual keys. Virtual and provider keys are live: in test mode `active_keys`, `agent_keys` and
--   `sealed_agents` are not touched
-- ARGV: of a change, then as script.rs names them. `policy` is '' when the agent has none
-- Returns: {'deleted'} | {'missing'} (no wallet row) | {'holds_money'} | {'awaits_deposit'} (it has pending deposits)
--   | {'open_escrows'} | {'no_account'} | {'changed'} (policy, wallet or virtual keys are others than the caller saw;
--   nothing happened, look again)
-- Cost: O(fields of the agent + its virtual keys, of which few are revoked: virtual_key/forget.lua takes away the
--   others); 33 calls, one a field, one more a provider key and three a virtual key
-- The number of lists of a wallet.
local LISTS = 8
local row = call('HMGET', KEYS.agent, 'wallet', 'balance', 'policy_id', 'pending', 'wallet_number', 'name', 'created_at')
if not row[1] then return {'missing'} end
if row[2] ~= '0' then return {'holds_money'} end
if (row[4] or '0') ~= '0' then return {'awaits_deposit'} end
if call('SCARD', KEYS.open_escrows) > 0 then return {'open_escrows'} end
if (row[3] or '') ~= ARGV.policy or row[5] ~= ARGV.wallet_number then return {'changed'} end
local virtual_keys, seen = {}, #KEYS - @KEYS.virtual_keys + 1
-- Reading one key more than the caller read is enough to detect others.
if ARGV.mode == 'live' then virtual_keys = call('ZRANGE', KEYS.agent_keys, 0, seen) end
if #virtual_keys ~= seen then return {'changed'} end

call('HSET', KEYS.closed_wallet, 'wallet_number', row[5], 'wallet', row[1], 'name', row[6], 'balance', '0', 'created_at', row[7],
  'updated_at', now, 'closed_at', now, 'agent', ARGV.agent)
for list = @KEYS.lists, @KEYS.open_escrows + LISTS do
  local closed = KEYS[list + LISTS]
  if call('EXISTS', KEYS[list]) == 1 then call('RENAME', KEYS[list], closed) end
end
local kept_bytes = call('HSTRLEN', KEYS.agent, 'description')
for _, field in ipairs(call('HKEYS', KEYS.agent)) do
  if string.match(field, '^pk_sealed:') then kept_bytes = kept_bytes + KEY_BYTES + call('HSTRLEN', KEYS.agent, field) end
  local stays = field == 'frozen' or field == 'held' or string.match(field, '^[dmsw]%d+$')
  if not stays then call('HDEL', KEYS.agent, field) end
end
count_kept_text(-kept_bytes)
for at, id in ipairs(virtual_keys) do
  call('ZREM', KEYS.active_keys, id)
  call('ZREM', KEYS.agent_keys, id)
  call('DEL', KEYS[@KEYS.virtual_keys - 1 + at])
end
if ARGV.mode == 'live' then call('SREM', KEYS.sealed_agents, ARGV.agent) end
if ARGV.policy ~= '' then
  call('DEL', KEYS.policy)
  call('ZREM', KEYS.policies, ARGV.policy)
end
call('ZREM', KEYS.agents, ARGV.agent)
call('HINCRBY', KEYS.account, format('%s_closed_wallets', ARGV.mode), 1)
recorded()
return {'deleted'}
