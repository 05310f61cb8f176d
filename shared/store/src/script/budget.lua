-- Fragment: budgets of records (decision D71). Takes away the last of ARGV: ` <kind>=<most>` for each kind.
local budgets = table.remove(ARGV)

-- Whether `count` records of a kind leave no room for one more.
local function is_full(kind, count)
  local most = string.match(budgets, string.format(' %s=(%%d+)', kind))
  return tonumber(count) >= tonumber(most)
end

-- The answer of a script that would make one record too many of a kind; nothing is written then.
local function over_budget(kind) return {'over_budget', kind} end

-- A count that the account record keeps for the mode.
local function counted(name) return redis.call('HGET', KEYS.account, string.format('%s_%s', ARGV.mode, name)) or '0' end

