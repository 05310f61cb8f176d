-- Fragment: named runs. Needs clock.lua. Writes down that the run ARGV[name] was seen: KEYS[run] is its record, KEYS[runs] the
--   index of its agent's runs, `life` the life of both in ms. Of a run that was not `known` it notes the beginning, and
--   drops the runs from the index whose records have ended.
local function list_run(run, runs, known, name, life)
  call('HSET', KEYS[run], 'last', format('%d', now_ms))
  call('PEXPIRE', KEYS[run], life)
  call('ZADD', KEYS[runs], now_ms, ARGV[name])
  if known then return end
  call('HSET', KEYS[run], 'first', format('%d', now_ms))
  call('ZREMRANGEBYSCORE', KEYS[runs], '-inf', now_ms - life)
end
