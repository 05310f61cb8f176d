-- Fragment: named runs. Needs clock.lua. Records the time of the last call of the run ARGV[name]: KEYS[run] is its
-- record, KEYS[runs] the index of its agent's runs, KEYS[all] that of all agents by `<agent>/<run>`, `life` the
-- lifetime of all three in ms. Records the start of a run that was not `known`. Removes some runs from both indexes
-- whose records have ended: more than one, so that neither index grows by those.
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
