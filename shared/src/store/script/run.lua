-- Fragment: named runs. Needs clock.lua. KEYS[run] is the run's record, KEYS[runs] the index of its agent's runs.
--   `last` is when the record was written last (false for a new run), ARGV[name] the run, ARGV[life] the life in ms.
-- The index and the record's end are written once in a minute of the clock, which spares the other calls of the minute two
-- writes; the life is that minute longer than what is promised.
local MINUTE = 60000
local function list_run(run, runs, last, name, life)
  if last and math.floor(now_ms / MINUTE) == math.floor(tonumber(last) / MINUTE) then return end
  redis.call('PEXPIRE', KEYS[run], ARGV[life])
  redis.call('ZADD', KEYS[runs], now_ms, ARGV[name])
  if last then return end
  redis.call('HSET', KEYS[run], 'first', string.format('%d', now_ms))
  redis.call('ZREMRANGEBYSCORE', KEYS[runs], '-inf', now_ms - tonumber(ARGV[life]))
end
