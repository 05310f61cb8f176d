-- Fragment: writes the strictest of all account-wide policies to the account record KEYS[1], for the mode ARGV[1].
-- KEYS[5] holds them by policy id as '<cap> <run> <day> <month>', with '-' for a limit that is not set.
-- The same rule in Rust: `strictest` in shared/src/domain/cap.rs.
local function tighter(limit, other)
  if other == '-' then return limit end
  if limit == '' or tonumber(other) < tonumber(limit) then return other end
  return limit
end

local function write_strictest()
  local policies = redis.call('HVALS', KEYS[5])
  local function field(name) return string.format('%s_%s', ARGV[1], name) end
  if #policies == 0 then
    redis.call('HDEL', KEYS[1], field('cap'), field('run'), field('day'), field('month'))
    return
  end
  local cap, run, day, month = '1', '', '', ''
  for _, policy in ipairs(policies) do
    local its_cap, its_run, its_day, its_month = string.match(policy, '^(%S+) (%S+) (%S+) (%S+)$')
    if its_cap ~= '1' then cap = '0' end
    run, day, month = tighter(run, its_run), tighter(day, its_day), tighter(month, its_month)
  end
  redis.call('HSET', KEYS[1], field('cap'), cap, field('run'), run, field('day'), day, field('month'), month)
end

