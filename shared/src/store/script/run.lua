-- Fragment: named runs. Needs clock.lua. Writes down that the run ARGV[name] was seen: KEYS[run] is its record, KEYS[runs] the
--   index of its agent's runs, ARGV[life] the life of both in ms. Of a run that was not `known` it notes the beginning, and
--   drops the runs from the index whose records have ended.
local function list_run(run, runs, known, name, life)
  redis.call('PEXPIRE', KEYS[run], ARGV[life])
  redis.call('ZADD', KEYS[runs], now_ms, ARGV[name])
  if known then return end
  redis.call('HSET', KEYS[run], 'first', string.format('%d', now_ms))
  redis.call('ZREMRANGEBYSCORE', KEYS[runs], '-inf', now_ms - tonumber(ARGV[life]))
end
