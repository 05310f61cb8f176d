-- Fragment: budgets of records (decision D71). Removes the last of ARGV: ` <kind>=<limit>` for each kind.
local budgets = table.remove(ARGV)

-- Returns whether `count` records of a kind reach its budget.
local function is_full(kind, count)
  local most = string.match(budgets, format(' %s=(%%d+)', kind))
  return tonumber(count) >= tonumber(most)
end

-- The reply of a script that would exceed the budget of a kind; nothing is written then.
local function over_budget(kind) return {'over_budget', kind} end

-- Returns a count of the mode in the account record.
local function counted(name) return call('HGET', KEYS.account, format('%s_%s', ARGV.mode, name)) or '0' end

