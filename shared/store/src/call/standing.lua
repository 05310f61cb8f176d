-- Purpose: see everything that a call or a spend of an agent would be checked against, at one moment, and change nothing.
-- KEYS: 1 account record  2 agent  3 run  4 virtual keys of the agent  5 active keys  6 rate  7 virtual key
--   8 runs of all agents  9 intents  10 transactions
-- ARGV: 1 mode  2 '1' when a run is named  3 key id ('' = no key)
--   4, 5 fields of the agent that hold the id and the sealed form of its provider key
-- Returns: {{now ms, agent exists, has a provider key, place of the key, ms left of its minute (below 0 = no minute is open)},
--   account's fields, agent's fields, spent by the run, requests of the key, agent of the key, {runs, whether the run has a
--   record, intents, bytes of their text, transactions that the account caused}}, the fields in the order of standing.rs, what
--   is not there being nil; where there is no account, {{}, {}, {}, nil, nil, nil, {}}
-- Cost: O(log keys of the account), and O(fields of the agent) where it has neither wallet nor policy; 11 to 15 calls
local month_field = string.format('m%d', month)
local function field(name) return string.format('%s_%s', ARGV[1], name) end
local account = redis.call('HMGET', KEYS[1], 'plan', string.format('t%d', month), string.format('n%d', month),
  field('cap'), field('run'), field('day'), field('month'), field('txn'), field('approval'))
if not account[1] then return {{}, {}, {}, false, false, false, {}} end
local agent = redis.call('HMGET', KEYS[2], 'frozen', 'slot', 'wallet', 'balance', 'spend_limit', 'held',
  string.format('d%d', today), month_field, string.format('w%d', today),
  'cap', 'cap_run', 'cap_day', 'cap_month', 'cap_txn', 'cap_approval')
agent[2] = agent[2] == month_field and '1' or '0'
local provider = redis.call('HMGET', KEYS[2], ARGV[4], ARGV[5])
local run = ARGV[2] == '1' and redis.call('HMGET', KEYS[3], 'spent', 'last') or {}
-- What counts against the budgets of records (decision D71), as the scripts that hold them count it.
local kept = redis.call('HMGET', KEYS[1], field('text_bytes'), field('txn_in'))
local records = {redis.call('ZCARD', KEYS[8]), run[2] and 1 or 0, redis.call('LLEN', KEYS[9]), tonumber(kept[1] or '0'),
  redis.call('HLEN', KEYS[10]) - (kept[2] or '0')}
local place, left, requests, owner = -1, -1, false, false
if ARGV[3] ~= '' then
  place = redis.call('ZRANK', KEYS[5], ARGV[3]) or -1
  requests = redis.call('GET', KEYS[6])
  left = redis.call('PTTL', KEYS[6])
  owner = redis.call('HGET', KEYS[7], 'agent')
end
local has_provider_key = provider[1] and provider[2] and 1 or 0
return {{now_ms, agent_exists(2, 4) and 1 or 0, has_provider_key, place, left}, account, agent, run[1] or false, requests, owner, records}
