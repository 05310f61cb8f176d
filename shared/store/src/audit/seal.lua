-- Purpose: keep the hashes of audit entries, which Rust computed from their lines, index the entries, and add what they mean to
--   the statistics of their days. All sealers compute the same, so of several that race the first one counts and the others
--   change nothing: each entry is added once.
-- KEYS: 1 audit lines  2 their hashes  3 what was archived before  4 calls whose hold was kept  5 and on: days, then lists of
--   numbers, then texts of decisions
-- ARGV: 1 number of the first entry  2 hash of the entry before it  3 how many entries  4 how many lists  5 how many days
--   6 most agents that a day names  7 life of what is remembered of a kept hold, in ms  8 and on: for each day until when it is
--   kept (in seconds), how many agents and their fields in order, how many sums and of each its field and what is added, and how
--   many moves and of each the eight words that `move` takes; then the hashes; then for each list how many numbers and the
--   numbers; then for each text what is appended to it
-- Returns: {'sealed'} | {'moved'} (the next entry to be sealed is another one) | {'disagree'} (the hash before is another one:
--   lines or hashes were changed by hand, or another version computes other entries)
-- Cost: O(entries); 5 calls, one a list and text; for each day 2, one a sum, and of each agent up to 2; up to 7 a kept hold
local CEILING, FIRST_DAY, EXPIRED_MAX = 9e18, 4, 10 -- what would pass the ceiling, where counters end, is not added
local base = redis.call('HMGET', KEYS[3], 'seq', 'hash')
local sealed, count, lists, days = redis.call('LLEN', KEYS[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if tonumber(base[1] or '0') + sealed + 1 ~= tonumber(ARGV[1]) then return {'moved'} end
if redis.call('LLEN', KEYS[1]) < sealed + count then return {'moved'} end
local before = sealed > 0 and redis.call('LINDEX', KEYS[2], -1) or base[2] or ''
if before ~= ARGV[2] then return {'disagree'} end

-- What the days say now, and where in ARGV their sums and moves begin.
local at, seen = 8, {}
for day = 1, days do
  local agents = tonumber(ARGV[at + 1])
  local known = redis.call('HMGET', KEYS[FIRST_DAY + day], 'spent', 'agents', 'a:*', unpack(ARGV, at + 2, at + 1 + agents))
  local adds = at + 2 + agents
  local moves = adds + 1 + 2 * tonumber(ARGV[adds])
  seen[day] = {first = at + 1, agents = agents, adds = adds, moves = moves, ends = ARGV[at],
    sums = {spent = tonumber(known[1] or '0'), ['a:*'] = tonumber(known[3] or '0')}, named = tonumber(known[2] or '0'),
    known = known}
  at = moves + 1 + 8 * tonumber(ARGV[moves])
end

redis.call('RPUSH', KEYS[2], unpack(ARGV, at, at + count - 1))
at = at + count
for list = FIRST_DAY + days + 1, FIRST_DAY + days + lists do
  local numbers = tonumber(ARGV[at])
  redis.call('RPUSH', KEYS[list], unpack(ARGV, at + 1, at + numbers))
  at = at + 1 + numbers
end
for text = FIRST_DAY + days + lists + 1, #KEYS do
  redis.call('APPEND', KEYS[text], ARGV[at])
  at = at + 1
end

local function add(day, field, amount)
  local sums = seen[day].sums
  local sum = (sums[field] or 0) + tonumber(amount)
  if math.abs(sum) > CEILING then return end
  sums[field] = sum
  redis.call('HINCRBY', KEYS[FIRST_DAY + day], field, amount)
end

-- The words from number `first` on: place of the agent among those of the day, calls and nanos to add, '' (then the sums of
-- the day hold them already) or 'keep' (then what follows is remembered as kept) or 'end' (then it is forgotten, and if it was there the next two are added instead),
-- calls, nanos, id of the decision, and when, in ms.
local function move(day, first, names)
  local agent, calls, nanos, what, other_calls, other_nanos, id, when = unpack(ARGV, first, first + 7)
  if what == 'keep' then
    local oldest = tonumber(when) - tonumber(ARGV[7])
    local over = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', oldest, 'LIMIT', 0, EXPIRED_MAX)
    if over[1] then redis.call('ZREM', KEYS[4], unpack(over)) end
    redis.call('ZADD', KEYS[4], when, id)
  elseif what == 'end' and redis.call('ZREM', KEYS[4], id) == 1 then
    calls, nanos = other_calls, other_nanos
  end
  if nanos ~= '0' then add(day, names[tonumber(agent)], nanos) end
  if what == '' then return end
  if calls ~= '0' then add(day, 'calls', calls) end
  if nanos ~= '0' then add(day, 'spent', nanos) end
end

for day = 1, days do
  local its = seen[day]
  for sum = its.adds + 1, its.moves - 1, 2 do
    add(day, ARGV[sum], ARGV[sum + 1])
  end
  local names, named = {}, its.named
  for agent = 1, its.agents do
    local field, value = ARGV[its.first + agent], its.known[3 + agent]
    if not value and named < tonumber(ARGV[6]) then
      named, value = named + 1, '0'
      redis.call('HSET', KEYS[FIRST_DAY + day], field, value)
    end
    names[agent] = value and field or 'a:*'
    if value then its.sums[field] = tonumber(value) end
  end
  if named > its.named then redis.call('HSET', KEYS[FIRST_DAY + day], 'agents', string.format('%d', named)) end
  for first = its.moves + 1, its.moves + 8 * tonumber(ARGV[its.moves]), 8 do
    move(day, first, names)
  end
  redis.call('EXPIREAT', KEYS[FIRST_DAY + day], its.ends)
end
return {'sealed'}
