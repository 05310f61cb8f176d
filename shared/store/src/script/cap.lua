-- Fragment: the limits of Cap and of the plan, in the order in which calls, their extensions and spends are checked
-- (specification §4.4, decision D23). Amounts are in nano-USD.
local CEILING = 9e18 -- counters are int64

-- Returns the reason of the first check that fails, for a limit also the limit and how much of it is used; nil if all
-- pass. A limit of '' or false does not bind; an amount of 0 exceeds none.
-- `cap` is '1' if Cap is on. Each limit of the policy stands before what is used of it; `txn_text` is that of a single
-- transaction. `agents_text` is the plan's limit of agents a month, of which `agents` have a slot; `has_slot` says
-- whether this agent has one.
-- One function, since making one costs as much as all checks of a call.
local function denial(amount, frozen, cap, txn_text, run_text, run_spent, day_text, day_spent, month_text, month_spent,
  has_slot, agents_text, agents, tracked_text, tracked)
  txn_text, run_text, day_text, month_text = txn_text or '', run_text or '', day_text or '', month_text or ''
  local charges = amount > 0
  if frozen then
    return 'frozen'
  elseif cap ~= '1' then
    return 'cap_disabled'
  elseif charges and txn_text ~= '' and amount > txn_text + 0 then
    return 'per_transaction_limit', txn_text, '0'
  elseif charges and run_text ~= '' and run_spent + amount > run_text + 0 then
    return 'per_run_limit', run_text, run_spent
  elseif charges and day_text ~= '' and day_spent + amount > day_text + 0 then
    return 'daily_limit', day_text, day_spent
  elseif charges and month_text ~= '' and month_spent + amount > month_text + 0 then
    return 'monthly_limit', month_text, month_spent
  elseif not has_slot and agents_text ~= '' and agents + 0 >= agents_text + 0 then
    return 'plan_agent_limit', agents_text, agents
  elseif charges and tracked_text ~= '' and tracked + amount > tracked_text + 0 then
    return 'plan_limit', tracked_text, tracked
  end
end
