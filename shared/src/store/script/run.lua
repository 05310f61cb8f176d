-- Fragment: named runs. Needs clock.lua. Writes down that the run ARGV[name] was seen: KEYS[run] is its record, KEYS[runs] the
--   index of its agent's runs, `life` the life of both in ms. Of a run that was not `known` it notes the beginning, and
--   drops some of the runs from the index whose records have ended: more than one, so that the index does not grow by those.
local EXPIRED_MAX = 10
local function list_run(run, runs, known, name, life)
  call('HSET', KEYS[run], 'last', format('%d', now_ms))
  call('PEXPIRE', KEYS[run], life)
  call('ZADD', KEYS[runs], now_ms, ARGV[name])
  if known then return end
  call('HSET', KEYS[run], 'first', format('%d', now_ms))
  local ended = call('ZRANGEBYSCORE', KEYS[runs], '-inf', now_ms - life, 'LIMIT', 0, EXPIRED_MAX)
  if ended[1] then call('ZREM', KEYS[runs], unpack(ended)) end
end
