-- Fragment: the end of a hold, which `settle`, `void` and `reap` have in common. Needs clock.lua.
-- Takes KEYS: 1 account record  2 agent  3 run  4 hold  5 due  6 kept index  7 kept hold  8 audit log; ARGV[1] allow id.

-- Ends what is held; it never falls below zero.
local function release(hash, amount)
  if redis.call('HINCRBY', KEYS[hash], 'held', amount) < 0 then redis.call('HSET', KEYS[hash], 'held', '0') end
end

-- Moves the counters of the hold's own periods from the estimate to `cost`, ends what is held when the hold was `open`, and
-- writes the audit line. Returns the account's new version, and whether the run has a record: that expires, and it must not
-- come back without a life and with less than nothing spent.
local function resolve(value, open, how, cost)
  local estimate, day, month, named = string.match(value, '^H (%d+) (%d+) (%d+) ([01]) ')
  local run_known = named == '1' and redis.call('EXISTS', KEYS[3]) == 1
  if cost ~= estimate then
    local difference = string.format('%d', tonumber(cost) - tonumber(estimate))
    redis.call('HINCRBY', KEYS[2], string.format('d%s', day), difference)
    redis.call('HINCRBY', KEYS[2], string.format('m%s', month), difference)
    redis.call('HINCRBY', KEYS[1], string.format('t%s', month), difference)
    if run_known then redis.call('HINCRBY', KEYS[3], 'spent', difference) end
  end
  if open then
    local freed = string.format('%d', -tonumber(estimate))
    release(1, freed)
    release(2, freed)
    if run_known then release(3, freed) end
  end
  local seq = redis.call('HINCRBY', KEYS[1], 'live_audit_seq', 1)
  redis.call('RPUSH', KEYS[8], string.format('%d %d A %s %s %s %s', seq, now_ms, how, cost, ARGV[1], value))
  return redis.call('HINCRBY', KEYS[1], 'version', 1), run_known
end
