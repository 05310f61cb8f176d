-- Purpose: decide on one proxied call and, if nothing speaks against it, charge its estimate and open a hold:
--   specification §4.4 steps 1, 2, 3 and 5 in one atomic step. A denial writes its audit line and, when Cap or the plan
--   denies a named run, that it was denied; besides only the rate count and, when it opens a rate window, the time of the key's last use.
-- KEYS: 1 account record  2 active keys  3 rate  4 agent  5 hold  6 due  7 run  8 virtual key  9 audit log
--   10 runs of the agent
-- ARGV: 1 key id  2 plan that the limits below belong to  3 generation known  4 lowest version acceptable
--   5 active keys  6 requests a minute  7 agents a month  8 tracked nanos a month (each '' = unlimited)
--   9 allow id  10 memo kept in the hold and in the audit line  11 'call', or 'probe' to stop after the rate
--   12 estimate nanos  13 run, when the caller named it ('' = unnamed)  14 life of the hold ms  15 life of a run ms
--   16, 17 fields of the agent that hold the id and the sealed form of its provider key
-- Returns: {word, generation, version, plan[, provider key id, sealed provider key]}; the words are those of authorize.rs
-- Cost: O(log keys of the account + log runs of the agent), and O(fields of the agent) once a day; up to 12 calls for a
--   denial, 12 for an approval, two more in the first call of a key's minute, two in a run's first of a minute of the
--   clock, two in a new run, one in a run that had ended, two in an agent's first
--   call of the month, and four more where a counter has reached 2^53
-- Counters are int64; a double is exact for integers below 2^53 only.
local CEILING, EXACT, MINUTE = 9e18, 2 ^ 53, 60000

local day_field = string.format('d%d', today)
local month = month_of(today)
local month_field = string.format('m%d', month)
local tracked_field = string.format('t%d', month)
local slots_field = string.format('n%d', month)

local account = redis.call('HMGET', KEYS[1], 'generation', 'version', 'plan', tracked_field, slots_field)
local generation, version, plan = account[1], account[2], account[3]
if not generation or not plan then return {'no_account', '0', '0', ''} end
local changes, same = tonumber(version), generation == ARGV[3]
if not same and tonumber(generation) < tonumber(ARGV[3]) then return {'stale', generation, version, plan} end
if same and changes < tonumber(ARGV[4]) then return {'stale', generation, version, plan} end
local rank = redis.call('ZRANK', KEYS[2], ARGV[1])
if not rank then return {'revoked', generation, version, plan} end
if plan ~= ARGV[2] then return {'other_plan', generation, version, plan} end

local requests = redis.call('INCR', KEYS[3])
if requests == 1 then
  redis.call('PEXPIRE', KEYS[3], MINUTE)
  redis.call('HSET', KEYS[8], 'last_used', string.format('%d', now_ms))
end
local function denied(reason, checks)
  local seq = redis.call('HINCRBY', KEYS[1], 'live_audit_seq', 1)
  redis.call('RPUSH', KEYS[9], string.format('%d %d D %s %s %s %s %s', seq, now_ms, reason, ARGV[9], ARGV[12] or '-',
    checks, ARGV[10]))
  return {reason, generation, version, plan}
end
local function at_least(value, limit) return limit ~= '' and value >= tonumber(limit) end
if at_least(rank, ARGV[5]) then return denied('plan_key_limit', string.format('%d:%s:,,,,,,', rank, ARGV[5])) end
if at_least(requests - 1, ARGV[6]) then
  return denied('rate_limited', string.format(',%d:%s:,,,,,', requests - 1, ARGV[6]))
end
if ARGV[11] == 'probe' then return {'ok', generation, version, plan} end

local agent = redis.call('HMGET', KEYS[4], 'frozen', ARGV[16], ARGV[17], 'cap', 'cap_run', 'cap_day', 'cap_month',
  day_field, month_field, 'slot', 'held')
if not agent[2] or not agent[3] then return denied('no_provider_key', ',,,,,,') end
local policy, at = agent, 4
if not agent[4] then
  policy, at = redis.call('HMGET', KEYS[1], 'live_cap', 'live_run', 'live_day', 'live_month'), 1
end
local run_cap, day_cap, month_cap = policy[at + 1] or '', policy[at + 2] or '', policy[at + 3] or ''
local named = ARGV[13] ~= ''
local run = named and redis.call('HMGET', KEYS[7], 'spent', 'calls', 'last', 'status') or {}

local estimate, run_spent = tonumber(ARGV[12]), tonumber(run[1] or '0')
local day_spent, month_spent = tonumber(agent[8] or '0'), tonumber(agent[9] or '0')
local tracked, slots = tonumber(account[4] or '0'), tonumber(account[5] or '0')
local has_slot = agent[10] == month_field
local function over(limit, spent) return limit ~= '' and estimate > 0 and spent + estimate > tonumber(limit) end
-- The first of Cap's checks that fails.
local function refusal()
  if agent[1] then return 'frozen' end
  if policy[at] ~= '1' then return 'cap_disabled' end
  if over(run_cap, run_spent) then return 'per_run_limit' end
  if over(day_cap, day_spent) then return 'daily_limit' end
  if over(month_cap, month_spent) then return 'monthly_limit' end
  if not has_slot and at_least(slots, ARGV[7]) then return 'plan_agent_limit' end
  if over(ARGV[8], tracked) then return 'plan_limit' end
end
local reason = refusal()
-- What stood before this call, a group for each check, also for those after the one that decided. Of agents, the others
-- that have a place in the month. What the agent holds is said with its day.
local checks = string.format('%d:%s:,%d:%s:,%s:%s:,%s:%s:%s,%s:%s:,%d:%s:,%s:%s:', rank, ARGV[5], requests - 1, ARGV[6],
  run[1] or '0', run_cap, agent[8] or '0', day_cap, agent[11] or '0', agent[9] or '0', month_cap,
  has_slot and slots - 1 or slots, ARGV[7], account[4] or '0', ARGV[8])
local seen = string.format('%d', now_ms)
-- Its index and the end of its record are written once in a minute of the clock, which spares other calls two writes.
local listed = not named or run[3] and math.floor(tonumber(run[3]) / MINUTE) == math.floor(now_ms / MINUTE)
if reason then
  if named then
    redis.call('HINCRBY', KEYS[7], 'denied', 1)
    redis.call('HSET', KEYS[7], 'last', seen)
    if not listed then list_run(7, 10, run[3], 13, 15) end
  end
  return denied(reason, checks)
end

local held = tonumber(agent[11] or '0')
local top = math.max(run_spent, month_spent, day_spent, tracked, held) + estimate
if top > CEILING then return {'too_much', generation, version, plan} end
local hold = string.format('H %s %d %d %d %s %s', ARGV[12], today, month, named and 1 or 0, checks, ARGV[10])
-- The id is refused when a hold or the mark of a voided one is there; then nothing is written.
if not redis.call('SET', KEYS[5], hold, 'NX') then return {'known', generation, version, plan} end
redis.call('ZADD', KEYS[6], now_ms + tonumber(ARGV[14]), ARGV[9])

if not agent[8] then prune(4, month) end
local next_version, calls = string.format('%d', changes + 1), tonumber(run[2] or '0') + 1
if top < EXACT then
  redis.call('HSET', KEYS[4], day_field, string.format('%d', day_spent + estimate), month_field,
    string.format('%d', month_spent + estimate), 'held', string.format('%d', held + estimate))
  redis.call('HSET', KEYS[1], tracked_field, string.format('%d', tracked + estimate), 'version', next_version)
  if named then
    redis.call('HSET', KEYS[7], 'spent', string.format('%d', run_spent + estimate), 'calls', string.format('%d', calls),
      'last', seen)
  end
else
  redis.call('HINCRBY', KEYS[4], day_field, ARGV[12])
  redis.call('HINCRBY', KEYS[4], month_field, ARGV[12])
  redis.call('HINCRBY', KEYS[4], 'held', ARGV[12])
  redis.call('HINCRBY', KEYS[1], tracked_field, ARGV[12])
  redis.call('HSET', KEYS[1], 'version', next_version)
  if named then
    redis.call('HINCRBY', KEYS[7], 'spent', ARGV[12])
    redis.call('HSET', KEYS[7], 'calls', string.format('%d', calls), 'last', seen)
  end
end
if not has_slot then
  redis.call('HSET', KEYS[4], 'slot', month_field)
  redis.call('HINCRBY', KEYS[1], slots_field, 1)
end
if not listed then list_run(7, 10, run[3], 13, 15) end
if run[4] then redis.call('HDEL', KEYS[7], 'status', 'ended') end
return {'ok', generation, next_version, plan, agent[2], agent[3]}
