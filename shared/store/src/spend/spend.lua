-- Purpose: one spend (decision D23), when it is asked for and when it is approved: injection, freeze, Cap, per transaction, run,
--   day, month, the plan, the wallet. Then charge it to the counters that proxied calls charge too, and take it from the
--   wallet; or keep why not; or that it waits for approval. A refusal for lack of money is answered with 400, which is
--   not stored under the caller's key (decision D59): it is kept as an intent of its own.
-- KEYS: 1 account record  2 audit log  3 transactions  4 agent  5 to 7 the rest of its leg  8 intent
--   9 spare intent for a refusal with 400  10 to 15 index of intents  16 run  17 virtual keys of the agent
--   18 runs of the agent  19 runs of all agents
-- ARGV: 1 mode  2 audit entry  3 plan that the limits belong to ('' = no plan counts)  4 agents a month  5 tracked nanos a
--   month (each '' = unlimited)  6 amount nanos  7 '' for a request, or the head of the intent that is approved
--   8 heads  9 intent id  10 spare id  11 run, when the caller named it ('' = unnamed)  12 life of a
--   run ms
--   13 words of the transaction, its id first: kept only where a wallet moves
--   14 '1' when its text was found to instruct the agent, else ''
--   15 and on: fields of the intent (of an approved one: those that change)  last: budgets, which bind a request only
-- Returns: {'settled', balance ('' without a wallet), policy id} | {'pending'} | {'blocked', reason, intent id}
--   | {'known'} (an intent of this id is there)
--   | {'changed'} (the intent no longer waits as the caller saw it) | {'other_plan', plan} | {'not_found'} | {'too_much'}
--   | {'over_budget', kind} | {'no_account'}; only the first three write anything
-- Cost: O(1), and O(fields of the agent) once a day, or where it has neither wallet nor policy of its own; up to 27 calls
--   for a refusal, up to 45 for a spend, and one for each old counter that goes
local NO_MONEY, INJECTION = 'insufficient_balance', 'injection_detected'
local approving = ARGV[7] ~= ''
local intent = redis.call('HMGET', KEYS[8], 'state', 'head')
if approving then
  if intent[1] ~= 'pending_approval' or intent[2] ~= ARGV[7] then return {'changed'} end
elseif intent[1] then
  return {'known'}
end

local live = ARGV[1] == 'live'
local day_field, month_field = string.format('d%d', today), string.format('m%d', month)
local wallet_field = string.format('w%d', today)
local tracked_field, slots_field = string.format('t%d', month), string.format('n%d', month)
local function field(name) return string.format('%s_%s', ARGV[1], name) end
local account = redis.call('HMGET', KEYS[1], 'plan', tracked_field, slots_field, field('cap'), field('run'), field('day'),
  field('month'), field('txn'), field('approval'), field('low'), field('text_bytes'), field('txn_in'))
if ARGV[3] ~= '' and ARGV[3] ~= account[1] then return {'other_plan', account[1]} end
local agent = redis.call('HMGET', KEYS[4], 'frozen', 'slot', 'wallet', 'balance', 'spend_limit', 'policy_id', day_field,
  month_field, wallet_field, 'cap', 'cap_run', 'cap_day', 'cap_month', 'cap_txn', 'cap_approval', 'cap_low')
if not agent[3] and not agent[10] and not agent_exists(4, 17) then return {'not_found'} end
if not approving then
  if is_full('intents', redis.call('LLEN', KEYS[10])) then return over_budget('intents') end
  if is_full('text_bytes', account[11] or '0') then return over_budget('text_bytes') end
  if agent[3] and is_full('transactions', redis.call('HLEN', KEYS[3]) - (account[12] or '0')) then return over_budget('transactions') end
end

local amount, named = tonumber(ARGV[6]), ARGV[11] ~= ''
local run = named and redis.call('HMGET', KEYS[16], 'spent', 'last', 'status') or {}
if not approving and named and not run[2] and is_full('runs', redis.call('ZCARD', KEYS[19])) then return over_budget('runs') end
-- Sums stay texts, since they are told: as numbers they would lose digits beyond 2^53.
local run_spent = run[1] or '0'
local day_spent, month_spent, wallet_spent = agent[7] or '0', agent[8] or '0', agent[9] or '0'
local tracked, slots = live and account[2] or '0', account[3] or '0'
local has_slot = agent[2] == month_field or not live
local policy, at = account, 4
if agent[10] then policy, at = agent, 10 end
local cap, run_cap, day_cap, month_cap = policy[at], policy[at + 1], policy[at + 2], policy[at + 3]
local txn_cap, threshold, low = policy[at + 4], policy[at + 5], policy[at + 6]

local function over(limit, spent) return limit and limit ~= '' and tonumber(spent) + amount > tonumber(limit) end
-- The reason; for a limit also the limit, and how much of it is used.
local function refusal()
  if ARGV[14] ~= '' then return INJECTION end
  if agent[1] then return 'frozen' end
  if cap ~= '1' then return 'cap_disabled' end
  if over(txn_cap, '0') then return 'per_transaction_limit', txn_cap, '0' end
  if over(run_cap, run_spent) then return 'per_run_limit', run_cap, run_spent end
  if over(day_cap, day_spent) then return 'daily_limit', day_cap, day_spent end
  if over(month_cap, month_spent) then return 'monthly_limit', month_cap, month_spent end
  if not has_slot and ARGV[4] ~= '' and tonumber(slots) >= tonumber(ARGV[4]) then
    return 'plan_agent_limit', ARGV[4], slots
  end
  if live and over(ARGV[5], tracked) then return 'plan_limit', ARGV[5], tracked end
  if not agent[3] then return nil end
  if over(agent[5], wallet_spent) then return 'spend_limit', agent[5], wallet_spent end
  if tonumber(agent[4]) < amount then return NO_MONEY end
end
local reason, limit, used = refusal()
if not reason and math.max(tonumber(run_spent), tonumber(day_spent), tonumber(month_spent), tonumber(wallet_spent),
  tonumber(tracked)) + amount > CEILING then
  return {'too_much'}
end

-- Writes the intent in `state`, new or as approved.
local function keep(key, id, state, why)
  if not approving then return keep_intent(key, 10, id, state, why, ARGV[8], 15) end
  local head = head_for(ARGV[8], state == 'blocked' and why or state)
  redis.call('HSET', KEYS[8], 'state', state, 'reason', why, 'head', head, 'filed', next_place(),
    unpack(ARGV, 15))
  redis.call('ZREM', KEYS[15], id)
  file_under(10, id, state)
end
-- Notes that the named run was seen, and counts one more of its `calls` or `denied`.
local function ran(count)
  if not named then return end
  if count then redis.call('HINCRBY', KEYS[16], count, 1) end
  list_run(16, 18, 19, run[2], 11, tonumber(ARGV[12]))
end
if reason then
  -- Neither lack of money nor a suspicious text is a denial by a policy or a plan.
  -- A denial makes no run record: it is counted on one that is there (decision D70).
  if reason ~= NO_MONEY and reason ~= INJECTION and run[2] then ran('denied') end
  local spare = reason == NO_MONEY and not approving
  local id = spare and ARGV[10] or ARGV[9]
  keep(spare and 9 or 8, id, 'blocked', reason)
  local words, unit = string.format('outcome=blocked reason=%s intentId=%s', reason, id), 'nanos'
  if reason == 'plan_agent_limit' then unit = 'agents' end
  if limit then words = string.format('%s limit_%s=%s spent_%s=%s', words, unit, limit, unit, used) end
  recorded(words)
  return {'blocked', reason, id}
end
if not approving and threshold and threshold ~= '' and amount > tonumber(threshold) then
  keep(8, ARGV[9], 'pending_approval', '')
  ran()
  recorded('outcome=pending_approval')
  return {'pending'}
end

if not agent[7] then prune(4) end
redis.call('HINCRBY', KEYS[4], day_field, ARGV[6])
redis.call('HINCRBY', KEYS[4], month_field, ARGV[6])
if live then redis.call('HINCRBY', KEYS[1], tracked_field, ARGV[6]) end
if not has_slot then
  redis.call('HSET', KEYS[4], 'slot', month_field)
  redis.call('HINCRBY', KEYS[1], slots_field, 1)
end
if named then
  redis.call('HINCRBY', KEYS[16], 'spent', ARGV[6])
  ran('calls')
  if run[3] then redis.call('HDEL', KEYS[16], 'status', 'ended') end
end
local balance = ''
if agent[3] then
  redis.call('HINCRBY', KEYS[4], wallet_field, ARGV[6])
  balance = post(4, string.format('-%s', ARGV[6]), ARGV[13])
  redis.call('HSET', KEYS[8], 'txn', string.match(ARGV[13], '^%S+'))
end
local allowed_by = agent[10] and agent[6] or 'account-policies'
keep(8, ARGV[9], 'settled', '')
redis.call('HSET', KEYS[8], 'balance', balance, 'policy', allowed_by, 'day', today, 'month', month)
recorded_debit(agent[3] and low, agent[4], balance, ARGV[13])
return {'settled', balance, allowed_by}
