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
-- Cost: O(1), and O(fields of the agent) once a day, or if it has neither wallet nor policy of its own; up to 33 calls
--   for a refusal, up to 52 for a spend, and one for each old counter that is removed
local NO_MONEY, INJECTION, OTHER_WALLET = 'insufficient_balance', 'injection_detected', 'wallet_closed'
local approving = ARGV.head ~= ''
local state, head, wallet_at_request = unpack(call('HMGET', KEYS.intent, 'state', 'head', 'wallet_number'))
if approving then
  if state ~= 'pending_approval' or head ~= ARGV.head then return {'changed'} end
elseif state then
  return {'known'}
end

local live = ARGV.mode == 'live'
local day_field, month_field = format('d%d', today), format('m%d', month)
local wallet_field = format('w%d', today)
local tracked_field, slots_field = format('t%d', month), format('n%d', month)
local slot_field = format('s%d', month)
local function field(name) return format('%s_%s', ARGV.mode, name) end
local plan, tracked, slots, transactions_in = unpack(call('HMGET', KEYS.account, 'plan', tracked_field, slots_field,
  field('txn_in')))
if ARGV.plan ~= '' and ARGV.plan ~= plan then return {'other_plan', plan} end
local frozen, slot, wallet, wallet_number, balance_before, spend_limit, day_spent, month_spent, wallet_spent, policy_id,
  cap, run_cap, day_cap, month_cap, txn_cap, threshold, low = unpack(call('HMGET', KEYS.agent, 'frozen', slot_field,
  'wallet', 'wallet_number', 'balance', 'spend_limit', day_field, month_field, wallet_field, 'policy_id', 'cap',
  'cap_run', 'cap_day', 'cap_month', 'cap_txn', 'cap_approval', 'cap_low'))
local has_policy = cap
if not has_policy then
  cap, run_cap, day_cap, month_cap, txn_cap, threshold, low = unpack(call('HMGET', KEYS.account, field('cap'),
    field('run'), field('day'), field('month'), field('txn'), field('approval'), field('low')))
end
-- An approval applies to the wallet that the agent had at the request ('' = none). If another wallet belongs to the
-- agent's id now, the spend is refused.
wallet_number = wallet_number or ''
local replaced = approving and wallet_at_request ~= wallet_number
if not replaced and not wallet and not has_policy and not agent_exists(@KEYS.agent, @KEYS.agent_keys) then return {'not_found'} end
if not approving then
  local full = full_of_intents(@KEYS.intent_index)
  if full then return over_budget(full) end
  if wallet and is_full('transactions', call('HLEN', KEYS.transactions) - (transactions_in or '0')) then return over_budget('transactions') end
end

local amount, named = tonumber(ARGV.amount), ARGV.run ~= ''
local run_spent, run_last, run_status
if named then run_spent, run_last, run_status = unpack(call('HMGET', KEYS.run, 'spent', 'last', 'status')) end
local makes_run = not approving and named and not run_last
if makes_run and is_full('runs', live_runs(@KEYS.account_runs, tonumber(ARGV.run_life))) then return over_budget('runs') end
-- Sums stay text, since they are reported: numbers would lose digits beyond 2^53.
local is_first_of_day = not day_spent
run_spent, day_spent = run_spent or '0', day_spent or '0'
month_spent, wallet_spent = month_spent or '0', wallet_spent or '0'
tracked, slots = live and tracked or '0', slots or '0'
local has_slot = slot or not live

-- Returns the reason; for a limit also the limit, and how much of it is used.
local function refusal()
  if replaced then return OTHER_WALLET end
  if ARGV.injection ~= '' then return INJECTION end
  local tracked_max = live and ARGV.tracked or ''
  local reason, limit, used = denial(amount, frozen, cap, txn_cap, run_cap, run_spent, day_cap, day_spent, month_cap,
    month_spent, has_slot, ARGV.agents, slots, tracked_max, tracked)
  if reason then return reason, limit, used end
  if not wallet then return nil end
  if spend_limit and wallet_spent + amount > spend_limit + 0 then
    return 'spend_limit', spend_limit, wallet_spent
  end
  if tonumber(balance_before) < amount then return NO_MONEY end
end
local reason, limit, used = refusal()
if not reason and math.max(tonumber(run_spent), tonumber(day_spent), tonumber(month_spent), tonumber(wallet_spent),
  tonumber(tracked)) + amount > CEILING then
  return {'too_much'}
end

-- Writes the intent in `new_state`, new or as approved.
local function keep(key, id, new_state, why)
  if not approving then return keep_intent(key, @KEYS.intent_index, id, new_state, why, ARGV.heads, @ARGV.fields) end
  local new_head = head_for(ARGV.heads, new_state == 'blocked' and why or new_state)
  call('HSET', KEYS.intent, 'state', new_state, 'reason', why, 'head', new_head, 'filed', next_seq(),
    unpack(ARGV, @ARGV.fields))
  call('ZREM', KEYS.pending_intents, id)
  file_under(@KEYS.intent_index, id, new_state)
end
-- Records the last use of the named run, and increments its `calls` or `denied`.
local function ran(count)
  if not named then return end
  if count then call('HINCRBY', KEYS.run, count, 1) else call('HDEL', KEYS.run, 'called') end
  list_run(@KEYS.run, @KEYS.agent_runs, @KEYS.account_runs, run_last, tonumber(ARGV.run_life))
end
if reason then
  -- Lack of money, a suspicious text or another wallet is not a denial by a policy or a plan. A denial creates no run
  -- record; it is counted on an existing one (decision D70).
  if reason ~= NO_MONEY and reason ~= INJECTION and reason ~= OTHER_WALLET and run_last then ran('denied') end
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

if is_first_of_day then prune(@KEYS.agent) end
call('HINCRBY', KEYS.agent, day_field, ARGV.amount)
call('HINCRBY', KEYS.agent, month_field, ARGV.amount)
if live then call('HINCRBY', KEYS.account, tracked_field, ARGV.amount) end
if not has_slot then
  call('HSET', KEYS.agent, slot_field, '1')
  call('HINCRBY', KEYS.account, slots_field, 1)
elseif slot and slot ~= '1' then
  -- So far only calls used it: void.lua would give it back with the last of them.
  call('HSET', KEYS.agent, slot_field, '1')
end
if named then
  call('HINCRBY', KEYS.run, 'spent', ARGV.amount)
  ran('calls')
  if run_status then call('HDEL', KEYS.run, 'status', 'ended') end
end
local balance = ''
if wallet then
  call('HINCRBY', KEYS.agent, wallet_field, ARGV.amount)
  balance = post(@KEYS.agent, format('-%s', ARGV.amount), ARGV.transaction_text)
  call('HSET', KEYS.intent, 'txn', string.match(ARGV.transaction_text, '^%S+'))
end
local allowed_by = has_policy and policy_id or 'account-policies'
keep(@KEYS.intent, ARGV.intent, 'settled', '')
call('HSET', KEYS.intent, 'balance', balance, 'policy', allowed_by, 'day', today, 'month', month)
recorded_debit(wallet and low, balance_before, balance, ARGV.transaction_text)
return {'settled', balance, allowed_by}
