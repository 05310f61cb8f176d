-- Purpose: store the hashes of audit entries, which Rust computed from their lines, index the entries, and add them to
--   the statistics of their days. All sealers compute the same, so only the first of several concurrent ones changes
--   anything: each entry is added once.
-- KEYS: as seal.rs names them. `base` is the extent archived before, `kept` the index of kept holds. `indexes` are
--   days, then lists of numbers, then texts of decisions
-- ARGV: as seal.rs names them. `before` is the hash of the entry before the first; `lists` and `days` are counts;
--   `kept_memory` is how long a kept hold is remembered, in ms. `words`: for each day its expiry (in seconds), the
--   number of agents and their fields in order, the number of sums and for each its field and addend, and the number of
--   moves and for each the eight words that `move` reads; then the hashes; then for each list the number of its
--   numbers, and the numbers; then for each text the addition
-- Returns: {'sealed'} | {'moved'} (the next entry to be sealed is another one) | {'disagree'} (the previous hash
--   differs: lines or hashes were changed manually, or another version computes other entries)
-- Cost: O(entries); 5 calls, one per list and text; for each day 2, one per sum, and per agent up to 2; up to 7 per
--   kept hold
-- Days are counted from 1, so FIRST_DAY is the index of the key before them.
local CEILING, FIRST_DAY, EXPIRED_MAX = 9e18, @KEYS.kept, 10 -- additions beyond the ceiling of counters are omitted
local base = call('HMGET', KEYS.base, 'seq', 'hash')
local sealed, count, lists, days = call('LLEN', KEYS.hashes), tonumber(ARGV.count), tonumber(ARGV.lists), tonumber(ARGV.days)
if tonumber(base[1] or '0') + sealed + 1 ~= tonumber(ARGV.first) then return {'moved'} end
if call('LLEN', KEYS.audit_log) < sealed + count then return {'moved'} end
local before = sealed > 0 and call('LINDEX', KEYS.hashes, -1) or base[2] or ''
if before ~= ARGV.before then return {'disagree'} end

-- Current values of the days, and where their sums and moves begin in ARGV.
local at, seen = @ARGV.words, {}
for day = 1, days do
  local agents = tonumber(ARGV[at + 1])
  local known = call('HMGET', KEYS[FIRST_DAY + day], 'spent', 'agents', 'a:*', unpack(ARGV, at + 2, at + 1 + agents))
  local adds = at + 2 + agents
  local moves = adds + 1 + 2 * tonumber(ARGV[adds])
  seen[day] = {first = at + 1, agents = agents, adds = adds, moves = moves, ends = ARGV[at],
    sums = {spent = tonumber(known[1] or '0'), ['a:*'] = tonumber(known[3] or '0')}, named = tonumber(known[2] or '0'),
    known = known}
  at = moves + 1 + 8 * tonumber(ARGV[moves])
end

call('RPUSH', KEYS.hashes, unpack(ARGV, at, at + count - 1))
at = at + count
for list = FIRST_DAY + days + 1, FIRST_DAY + days + lists do
  local numbers = tonumber(ARGV[at])
  call('RPUSH', KEYS[list], unpack(ARGV, at + 1, at + numbers))
  at = at + 1 + numbers
end
for text = FIRST_DAY + days + lists + 1, #KEYS do
  call('APPEND', KEYS[text], ARGV[at])
  at = at + 1
end

local function add(day, field, amount)
  local sums = seen[day].sums
  local sum = (sums[field] or 0) + tonumber(amount)
  if math.abs(sum) > CEILING then return end
  sums[field] = sum
  call('HINCRBY', KEYS[FIRST_DAY + day], field, amount)
end

-- The words from number `first` on: index of the agent in the day's list; calls and nanos to add; '' (the day's sums
-- already include them), 'keep' (remember the rest as kept) or 'end' (forget it, and if it was remembered add the next
-- two instead); calls; nanos; id of the decision; time in ms.
local function move(day, first, names)
  local agent, calls, nanos, what, other_calls, other_nanos, id, when = unpack(ARGV, first, first + 7)
  if what == 'keep' then
    local oldest = tonumber(when) - tonumber(ARGV.kept_memory)
    local over = call('ZRANGEBYSCORE', KEYS.kept, '-inf', oldest, 'LIMIT', 0, EXPIRED_MAX)
    if over[1] then call('ZREM', KEYS.kept, unpack(over)) end
    call('ZADD', KEYS.kept, when, id)
  elseif what == 'end' and call('ZREM', KEYS.kept, id) == 1 then
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
    if not value and named < tonumber(ARGV.agents_max) then
      named, value = named + 1, '0'
      call('HSET', KEYS[FIRST_DAY + day], field, value)
    end
    names[agent] = value and field or 'a:*'
    if value then its.sums[field] = tonumber(value) end
  end
  if named > its.named then call('HSET', KEYS[FIRST_DAY + day], 'agents', format('%d', named)) end
  for first = its.moves + 1, its.moves + 8 * tonumber(ARGV[its.moves]), 8 do
    move(day, first, names)
  end
  call('EXPIREAT', KEYS[FIRST_DAY + day], its.ends)
end
return {'sealed'}
