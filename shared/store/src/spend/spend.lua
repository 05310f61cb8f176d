-- Purpose: execute one spend (decision D23), when requested or when approved: check injection, freeze, Cap, the limits
--   per transaction, run, day and month, the plan and the wallet. Then charge it to the counters that proxied calls
--   also use, and debit the wallet; or store the refusal; or let it wait for approval. A refusal for lack of money is
--   answered with 400, which is not stored under the caller's key (decision D59), but as a separate intent.
-- KEYS: of a change, then as spend.rs names them. `agent` is the agent's leg; `spare_intent` is for a refusal with 400;
--   `intent_index` and `pending_intents` are the six keys of the index of intents
-- ARGV: of a change, then as spend.rs names them. `plan` is the plan whose limits apply ('' = none), `agents` and
--   `tracked` (nanos) are its monthly limits ('' = unlimited). `amount` is in nanos. `head` is '' for a request, or
--   that of the approved intent; `run` is '' if the caller named none, and `run_life` is in ms. `transaction_text`
--   begins with the id and is stored only if a wallet changes. `injection` is '1' if a text was found to instruct the
--   agent, otherwise ''. `fields` are those of the intent (for an approved one: those that change). Last: budgets,
--   which only limit requests
-- Returns: {'settled', balance ('' without a wallet), policy id} | {'pending'} | {'blocked', reason, intent id} |
--   {'known'} (an intent with this id exists) | {'changed'} (the intent does not wait as the caller read it) |
--   {'other_plan', plan} | {'not_found'} | {'too_much'} | {'over_budget', kind} | {'no_account'}; only the first three
--   write anything
-- Cost: O(1), and O(fields of the agent) once a day, or if it has neither wallet nor policy of its own; up to 32 calls
--   for a refusal, up to 51 for a spend, and one for each old counter that is removed
local NO_MONEY, INJECTION, OTHER_WALLET = 'insufficient_balance', 'injection_detected', 'wallet_closed'
local approving = ARGV.head ~= ''
local intent = call('HMGET', KEYS.intent, 'state', 'head', 'wallet_number')
if approving then
  if intent[1] ~= 'pending_approval' or intent[2] ~= ARGV.head then return {'changed'} end
elseif intent[1] then
  return {'known'}
end

local live = ARGV.mode == 'live'
local day_field, month_field = format('d%d', today), format('m%d', month)
local wallet_field = format('w%d', today)
local tracked_field, slots_field = format('t%d', month), format('n%d', month)
local slot_field = format('s%d', month)
local function field(name) return format('%s_%s', ARGV.mode, name) end
local account = call('HMGET', KEYS.account, 'plan', tracked_field, slots_field, field('cap'), field('run'), field('day'),
  field('month'), field('txn'), field('approval'), field('low'), field('txn_in'))
if ARGV.plan ~= '' and ARGV.plan ~= account[1] then return {'other_plan', account[1]} end
local agent = call('HMGET', KEYS.agent, 'frozen', slot_field, 'wallet', 'balance', 'spend_limit', 'policy_id', day_field,
  month_field, wallet_field, 'cap', 'cap_run', 'cap_day', 'cap_month', 'cap_txn', 'cap_approval', 'cap_low', 'wallet_number')
-- An approval applies to the wallet that the agent had at the request ('' = none). If another wallet belongs to the
-- agent's id now, the spend is refused.
local wallet_number = agent[17] or ''
local replaced = approving and intent[3] ~= wallet_number
if not replaced and not agent[3] and not agent[10] and not agent_exists(@KEYS.agent, @KEYS.agent_keys) then return {'not_found'} end
if not approving then
  local full = full_of_intents(@KEYS.intent_index)
  if full then return over_budget(full) end
  if agent[3] and is_full('transactions', call('HLEN', KEYS.transactions) - (account[11] or '0')) then return over_budget('transactions') end
end

local amount, named = tonumber(ARGV.amount), ARGV.run ~= ''
local run = named and call('HMGET', KEYS.run, 'spent', 'last', 'status') or {}
if not approving and named and not run[2] and is_full('runs', live_runs(@KEYS.account_runs, tonumber(ARGV.run_life))) then return over_budget('runs') end
-- Sums stay text, since they are reported: numbers would lose digits beyond 2^53.
local run_spent = run[1] or '0'
local day_spent, month_spent, wallet_spent = agent[7] or '0', agent[8] or '0', agent[9] or '0'
local tracked, slots = live and account[2] or '0', account[3] or '0'
local has_slot = agent[2] or not live
local policy, at = account, 4
if agent[10] then policy, at = agent, 10 end
local txn_cap, threshold, low = policy[at + 4] or '', policy[at + 5], policy[at + 6]

-- Returns the reason; for a limit also the limit, and how much of it is used.
local function refusal()
  if replaced then return OTHER_WALLET end
  if ARGV.injection ~= '' then return INJECTION end
  local tracked_max = live and ARGV.tracked or ''
  local reason, limit, used = denial(amount, agent[1], policy, at, txn_cap, run_spent, day_spent, month_spent, has_slot,
    ARGV.agents, slots, tracked_max, tracked)
  if reason then return reason, limit, used end
  if not agent[3] then return nil end
  if agent[5] and wallet_spent + amount > agent[5] + 0 then
    return 'spend_limit', agent[5], wallet_spent
  end
  if tonumber(agent[4]) < amount then return NO_MONEY end
end
local reason, limit, used = refusal()
if not reason and math.max(tonumber(run_spent), tonumber(day_spent), tonumber(month_spent), tonumber(wallet_spent),
  tonumber(tracked)) + amount > CEILING then
  return {'too_much'}
end

-- Writes the intent in `state`, new or as approved.
local function keep(key, id, state, why)
  if not approving then return keep_intent(key, @KEYS.intent_index, id, state, why, ARGV.heads, @ARGV.fields) end
  local head = head_for(ARGV.heads, state == 'blocked' and why or state)
  call('HSET', KEYS.intent, 'state', state, 'reason', why, 'head', head, 'filed', next_seq(),
    unpack(ARGV, @ARGV.fields))
  call('ZREM', KEYS.pending_intents, id)
  file_under(@KEYS.intent_index, id, state)
end
-- Records the last use of the named run, and increments its `calls` or `denied`.
local function ran(count)
  if not named then return end
  if count then call('HINCRBY', KEYS.run, count, 1) else call('HDEL', KEYS.run, 'called') end
  list_run(@KEYS.run, @KEYS.agent_runs, @KEYS.account_runs, run[2], tonumber(ARGV.run_life))
end
if reason then
  -- Lack of money, a suspicious text or another wallet is not a denial by a policy or a plan. A denial creates no run
  -- record; it is counted on an existing one (decision D70).
  if reason ~= NO_MONEY and reason ~= INJECTION and reason ~= OTHER_WALLET and run[2] then ran('denied') end
  local spare = reason == NO_MONEY and not approving
  local id = spare and ARGV.spare_intent or ARGV.intent
  keep(spare and @KEYS.spare_intent or @KEYS.intent, id, 'blocked', reason)
  local words, unit = format('outcome=blocked reason=%s intentId=%s', reason, id), 'nanos'
  if reason == 'plan_agent_limit' then unit = 'agents' end
  if limit then words = format('%s limit_%s=%s spent_%s=%s', words, unit, limit, unit, used) end
  recorded(words)
  return {'blocked', reason, id}
end
if not approving and threshold and threshold ~= '' and amount > tonumber(threshold) then
  keep(@KEYS.intent, ARGV.intent, 'pending_approval', '')
  call('HSET', KEYS.intent, 'wallet_number', wallet_number)
  ran()
  recorded('outcome=pending_approval')
  return {'pending'}
end

if not agent[7] then prune(@KEYS.agent) end
call('HINCRBY', KEYS.agent, day_field, ARGV.amount)
call('HINCRBY', KEYS.agent, month_field, ARGV.amount)
if live then call('HINCRBY', KEYS.account, tracked_field, ARGV.amount) end
if not has_slot then
  call('HSET', KEYS.agent, slot_field, '1')
  call('HINCRBY', KEYS.account, slots_field, 1)
elseif agent[2] and agent[2] ~= '1' then
  -- So far only calls used it: void.lua would give it back with the last of them.
  call('HSET', KEYS.agent, slot_field, '1')
end
if named then
  call('HINCRBY', KEYS.run, 'spent', ARGV.amount)
  ran('calls')
  if run[3] then call('HDEL', KEYS.run, 'status', 'ended') end
end
local balance = ''
if agent[3] then
  call('HINCRBY', KEYS.agent, wallet_field, ARGV.amount)
  balance = post(@KEYS.agent, format('-%s', ARGV.amount), ARGV.transaction_text)
  call('HSET', KEYS.intent, 'txn', string.match(ARGV.transaction_text, '^%S+'))
end
local allowed_by = agent[10] and agent[6] or 'account-policies'
keep(@KEYS.intent, ARGV.intent, 'settled', '')
call('HSET', KEYS.intent, 'balance', balance, 'policy', allowed_by, 'day', today, 'month', month)
recorded_debit(agent[3] and low, agent[4], balance, ARGV.transaction_text)
return {'settled', balance, allowed_by}
