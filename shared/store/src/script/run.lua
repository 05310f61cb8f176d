-- Fragment: named runs. Needs clock.lua. Writes down that the run ARGV[name] was seen: KEYS[run] is its record, KEYS[runs] the
--   index of its agent's runs, KEYS[all] that of all agents by `<agent>/<run>`, `life` the life of all three in ms. Of a run that was not `known` it notes the beginning, and
--   drops some of the runs from both whose records have ended: more than one, so that the index does not grow by those.
local EXPIRED_MAX = 10
local function drop_ended(index, life)
  local ended = call('ZRANGEBYSCORE', KEYS[index], '-inf', now_ms - life, 'LIMIT', 0, EXPIRED_MAX)
  if ended[1] then call('ZREM', KEYS[index], unpack(ended)) end
end
local function list_run(run, runs, all, known, name, life)
  call('HSET', KEYS[run], 'last', format('%d', now_ms))
  call('PEXPIRE', KEYS[run], life)
  call('ZADD', KEYS[runs], now_ms, ARGV[name])
  call('ZADD', KEYS[all], now_ms, string.match(KEYS[run], '/run/(.+)$'))
  if known then return end
  call('HSET', KEYS[run], 'first', format('%d', now_ms))
  drop_ended(runs, life)
  drop_ended(all, life)
end
