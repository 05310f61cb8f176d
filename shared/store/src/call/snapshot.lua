-- Purpose: read everything that a call or a spend of an agent would be checked against, at one moment, without changing
--   anything.
-- KEYS: as snapshot.rs names them
-- ARGV: as snapshot.rs names them; `run_named` is '1' if a run is named, `run_life` is in ms, the key id is empty if no
--   key is requested
-- Returns: {{now ms, agent exists, has a provider key, rank of the key, ms left of its minute (below 0 = no minute is
--   open)}, account's fields, agent's fields, spent by the run, requests of the key, agent of the key, {runs that have
--   not ended, whether the run has a record, intents, bytes of their text, transactions that the account caused}}, the
--   fields in the order of snapshot.rs, absent ones being nil; without an account, {{}, {}, {}, nil, nil, nil, {}}
-- Cost: O(log keys of the account), and O(fields of the agent) where it has neither wallet nor policy; 11 to 15 calls
local MINUTE = 60000
local function field(name) return format('%s_%s', ARGV.mode, name) end
local account = call('HMGET', KEYS.account, 'plan', format('t%d', month), format('n%d', month),
  field('cap'), field('run'), field('day'), field('month'), field('txn'), field('approval'))
if not account[1] then return {{}, {}, {}, false, false, false, {}} end
local agent = call('HMGET', KEYS.agent, 'frozen', format('s%d', month), 'wallet', 'balance', 'spend_limit', 'held',
  format('d%d', today), format('m%d', month), format('w%d', today),
  'cap', 'cap_run', 'cap_day', 'cap_month', 'cap_txn', 'cap_approval')
local provider = call('HMGET', KEYS.agent, ARGV.provider_key_id, ARGV.provider_key_sealed)
local run = ARGV.run_named == '1' and call('HMGET', KEYS.run, 'spent', 'last') or {}
-- Usage of the budgets of records (decision D71), as the scripts that enforce them count it.
local counts = call('HMGET', KEYS.account, field('text_bytes'), field('txn_in'))
local records = {live_runs(@KEYS.account_runs, tonumber(ARGV.run_life)), run[2] and 1 or 0, call('LLEN', KEYS.intents),
  tonumber(counts[1] or '0'), call('HLEN', KEYS.transactions) - (counts[2] or '0')}
local rank, ms_left, requests, owner = -1, -1, false, false
if ARGV.key_id ~= '' then
  rank = call('ZRANK', KEYS.active_keys, ARGV.key_id) or -1
  requests = call('GET', KEYS.rate)
  ms_left = call('PTTL', KEYS.rate)
  -- A window from the time when the clock was ahead: the next request beyond the rate opens a new one.
  if ms_left > MINUTE then requests, ms_left = false, -1 end
  owner = call('HGET', KEYS.virtual_key, 'agent')
end
local has_provider_key = provider[1] and provider[2] and 1 or 0
local exists = agent_exists(@KEYS.agent, @KEYS.agent_keys) and 1 or 0
return {{now_ms, exists, has_provider_key, rank, ms_left}, account, agent, run[1] or false, requests, owner, records}
