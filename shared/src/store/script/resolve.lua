-- Fragment: the end of a hold, which `settle`, `void` and `reap` have in common. Needs clock.lua.
-- Takes KEYS: 1 account record  2 agent  3 run  4 hold  5 due  6 kept index  7 kept hold  8 audit log; ARGV[1] allow id.
local EXACT = 2 ^ 53 -- a double is exact for integers below it only

-- Moves the counters of the hold's own periods from the estimate to `cost`, ends what its agent holds when the hold was
-- `open` (that never falls below zero), and writes the audit line. Where `expected` is given and is not the estimate,
-- nothing is changed, and nothing returned; else returns true, and whether the run has a record with spending: that
-- expires, and it must not come back without a life and with less than nothing spent.
-- The end of a hold leaves the account's version as it is. That guards against a store that lost writes, and a lost end
-- lets nobody overspend: the hold is open again with its whole estimate charged, to be settled, voided or kept anew.
local function resolve(value, open, how, cost, expected)
  local estimate, day, month, named = string.match(value, '^H (%d+) (%d+) (%d+) ([01]) ')
  if expected and estimate ~= expected then return end
  local day_field, month_field = string.format('d%s', day), string.format('m%s', month)
  local tracked_field = string.format('t%s', month)
  local agent = redis.call('HMGET', KEYS[2], day_field, month_field, 'held')
  local account = redis.call('HMGET', KEYS[1], tracked_field, 'live_audit_seq')
  local spent = named == '1' and redis.call('HGET', KEYS[3], 'spent')

  local day_spent, month_spent, held = tonumber(agent[1] or '0'), tonumber(agent[2] or '0'), tonumber(agent[3] or '0')
  local tracked, run_spent = tonumber(account[1] or '0'), tonumber(spent or '0')
  local new, old = tonumber(cost), tonumber(estimate)
  local by, freed = new - old, open and math.min(held, old) or 0
  local seq = string.format('%d', tonumber(account[2] or '0') + 1)
  if math.max(day_spent, month_spent, held, tracked, run_spent) + new < EXACT then
    redis.call('HSET', KEYS[2], day_field, string.format('%d', day_spent + by), month_field,
      string.format('%d', month_spent + by), 'held', string.format('%d', held - freed))
    redis.call('HSET', KEYS[1], tracked_field, string.format('%d', tracked + by), 'live_audit_seq', seq)
    if spent then redis.call('HSET', KEYS[3], 'spent', string.format('%d', run_spent + by)) end
  else
    local difference = string.format('%d', by)
    redis.call('HINCRBY', KEYS[2], day_field, difference)
    redis.call('HINCRBY', KEYS[2], month_field, difference)
    redis.call('HINCRBY', KEYS[2], 'held', string.format('%d', -freed))
    redis.call('HINCRBY', KEYS[1], tracked_field, difference)
    redis.call('HINCRBY', KEYS[1], 'live_audit_seq', 1)
    if spent then redis.call('HINCRBY', KEYS[3], 'spent', difference) end
  end
  redis.call('RPUSH', KEYS[8], string.format('%s %d A %s %s %s %s', seq, now_ms, how, cost, ARGV[1], value))
  return true, spent
end
