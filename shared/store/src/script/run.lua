-- Fragment: named runs. Needs clock.lua. Writes down that the run ARGV[name] was seen: KEYS[run] is its record,
--   KEYS[runs] the index of its agent's runs, KEYS[all] that of all agents by `<agent>/<run>`, `life` the life of all
--   three in ms. Of a run that was not `known` it notes the beginning. From both indexes it drops some of the runs
--   whose records have ended: more than one, so that neither grows by those.
local EXPIRED_MAX = 10
local function list_in(index, member, life)
  call('ZADD', KEYS[index], now_ms, member)
  call('PEXPIRE', KEYS[index], life)
  local ended = call('ZRANGEBYSCORE', KEYS[index], '-inf', now_ms - life, 'LIMIT', 0, EXPIRED_MAX)
  if ended[1] then call('ZREM', KEYS[index], unpack(ended)) end
end
local function list_run(run, runs, all, known, name, life)
  call('HSET', KEYS[run], 'last', format('%d', now_ms))
  call('PEXPIRE', KEYS[run], life)
  list_in(runs, ARGV[name], life)
  list_in(all, string.match(KEYS[run], '/run/(.+)$'), life)
  if not known then call('HSET', KEYS[run], 'first', format('%d', now_ms)) end
end
