-- Fragment: writes the strictest of all account-wide policies of the mode to the account record.
-- KEYS.target contains them by policy id as '<cap> <run> <day> <month> <txn> <approval> <low>', with '-' for unset
-- values. The same rule in Rust: `account_limits` in tests/money_model/model/render/policies.rs.
local POLICY = '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$'

local function tighter(limit, other)
  if not other or other == '-' then return limit end
  if limit == '' or tonumber(other) < tonumber(limit) then return other end
  return limit
end

-- The highest threshold is the first to report a low balance.
local function earlier(low, other)
  if not other or other == '-' then return low end
  if low == '' or tonumber(other) > tonumber(low) then return other end
  return low
end

local function write_strictest()
  local policies = call('HVALS', KEYS.target)
  local function field(name) return format('%s_%s', ARGV.mode, name) end
  if #policies == 0 then
    call('HDEL', KEYS.account, field('cap'), field('run'), field('day'), field('month'), field('txn'),
      field('approval'), field('low'))
    return
  end
  local cap, run, day, month, txn, approval, low = '1', '', '', '', '', '', ''
  for _, policy in ipairs(policies) do
    local its_cap, its_run, its_day, its_month, its_txn, its_approval, its_low = string.match(policy, POLICY)
    if its_cap ~= '1' then cap = '0' end
    run, day, month = tighter(run, its_run), tighter(day, its_day), tighter(month, its_month)
    txn, approval, low = tighter(txn, its_txn), tighter(approval, its_approval), earlier(low, its_low)
  end
  call('HSET', KEYS.account, field('cap'), cap, field('run'), run, field('day'), day, field('month'), month,
    field('txn'), txn, field('approval'), approval, field('low'), low)
end
