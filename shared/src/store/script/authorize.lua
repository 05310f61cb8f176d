-- Purpose: decide on one proxied call and, if nothing speaks against it, charge its estimate and open a hold:
--   specification §4.4 steps 1, 2, 3 and 5 in one atomic step. A denial writes nothing but the rate count
--   and, when it opens a rate window, the time of the key's last use.
-- KEYS: 1 account record  2 active keys  3 rate  4 agent  5 hold  6 due  7 run  8 virtual key
-- ARGV: 1 key id  2 plan that the limits below belong to  3 generation known  4 lowest version acceptable
--   5 active keys  6 requests a minute  7 agents a month  8 tracked nanos a month (each '' = unlimited)
--   9 'call', or 'probe' to stop after the rate  10 estimate nanos  11 '1' when the caller named the run
--   12 life of the hold ms  13 life of a run ms  14 allow id  15 memo kept in the hold
--   16, 17 fields of the agent that hold the id and the sealed form of its provider key
-- Returns: {word, generation, version, plan[, provider key id, sealed provider key]}; the words are those of authorize.rs
-- Cost: O(log keys of the account); 9 calls for a denial, up to 20 for an approval, one more once a minute and key
local CEILING = 9e18 -- counters are int64

local day_field = string.format('d%d', today)
local month = month_of(today)
local month_field = string.format('m%d', month)
local tracked_field = string.format('t%d', month)
local slots_field = string.format('n%d', month)

local account = redis.call('HMGET', KEYS[1], 'generation', 'version', 'plan', 'live_cap', 'live_run', 'live_day',
  'live_month', tracked_field, slots_field)
local generation, version, plan = account[1], account[2], account[3]
if not generation or not plan then return {'no_account', '0', '0', ''} end
local function answer(word) return {word, generation, version, plan} end
local known = tonumber(ARGV[3])
if tonumber(generation) < known then return answer('stale') end
if tonumber(generation) == known and tonumber(version) < tonumber(ARGV[4]) then return answer('stale') end

local rank = redis.call('ZRANK', KEYS[2], ARGV[1])
if not rank then return answer('revoked') end
if plan ~= ARGV[2] then return answer('other_plan') end

local requests = redis.call('INCR', KEYS[3])
if requests == 1 then
  redis.call('PEXPIRE', KEYS[3], 60000)
  redis.call('HSET', KEYS[8], 'last_used', string.format('%d', now_ms))
end
local function at_least(value, limit) return limit ~= '' and value >= tonumber(limit) end
if at_least(rank, ARGV[5]) then return answer('plan_key_limit') end
if at_least(requests - 1, ARGV[6]) then return answer('rate_limited') end
if ARGV[9] == 'probe' then return answer('ok') end

local agent = redis.call('HMGET', KEYS[4], 'frozen', ARGV[16], ARGV[17], 'cap', 'cap_run', 'cap_day', 'cap_month',
  day_field, month_field, 'slot')
if not agent[2] or not agent[3] then return answer('no_provider_key') end
if agent[1] then return answer('frozen') end
local cap, run_cap, day_cap, month_cap = agent[4], agent[5], agent[6], agent[7]
if not cap then cap, run_cap, day_cap, month_cap = account[4], account[5], account[6], account[7] end
if cap ~= '1' then return answer('cap_disabled') end

local estimate, named = tonumber(ARGV[10]), ARGV[11] == '1'
local run_spent = named and tonumber(redis.call('HGET', KEYS[7], 'spent') or '0') or 0
local day_spent, month_spent = tonumber(agent[8] or '0'), tonumber(agent[9] or '0')
local tracked = tonumber(account[8] or '0')
local function over(limit, spent)
  return limit and limit ~= '' and estimate > 0 and spent + estimate > tonumber(limit)
end
if over(run_cap, run_spent) then return answer('per_run_limit') end
if over(day_cap, day_spent) then return answer('daily_limit') end
if over(month_cap, month_spent) then return answer('monthly_limit') end
local has_slot = agent[10] == month_field
if not has_slot and at_least(tonumber(account[9] or '0'), ARGV[7]) then return answer('plan_agent_limit') end
if over(ARGV[8], tracked) then return answer('plan_limit') end

if redis.call('EXISTS', KEYS[5]) == 1 then return answer('known') end
if math.max(run_spent, month_spent, day_spent, tracked) + estimate > CEILING then return answer('too_much') end

if not agent[8] then prune(4, month) end
redis.call('HINCRBY', KEYS[4], day_field, ARGV[10])
redis.call('HINCRBY', KEYS[4], month_field, ARGV[10])
redis.call('HINCRBY', KEYS[1], tracked_field, ARGV[10])
if not has_slot then
  redis.call('HSET', KEYS[4], 'slot', month_field)
  redis.call('HINCRBY', KEYS[1], slots_field, 1)
end
if named then
  redis.call('HINCRBY', KEYS[7], 'spent', ARGV[10])
  local calls = redis.call('HINCRBY', KEYS[7], 'calls', 1)
  local seen = string.format('%d', now_ms)
  if calls == 1 then redis.call('HSET', KEYS[7], 'first', seen) end
  redis.call('HSET', KEYS[7], 'last', seen)
  redis.call('PEXPIRE', KEYS[7], ARGV[13])
end
redis.call('SET', KEYS[5], string.format('H %s %d %d %s %s', ARGV[10], today, month, ARGV[11], ARGV[15]))
redis.call('ZADD', KEYS[6], now_ms + tonumber(ARGV[12]), ARGV[14])
version = redis.call('HINCRBY', KEYS[1], 'version', 1)
return {'ok', generation, version, plan, agent[2], agent[3]}
