-- Fragment: named runs. Needs clock.lua. Records the time of the last call of a run: KEYS[run] is its record, whose
-- name ends in `/run/<agent>/<run>`, KEYS[runs] the index of its agent's runs by `<run>`, KEYS[all] that of all agents
-- by `<agent>/<run>`, `life` the lifetime of all three in ms. Records the start of a run that was not `known`. Removes
-- some runs from both indexes whose records have ended: more than one, so that neither index grows by those.
local EXPIRED_MAX = 10
local function list_in(index, member, life)
  call('ZADD', KEYS[index], now_ms, member)
  call('PEXPIRE', KEYS[index], life)
  local ended = call('ZRANGEBYSCORE', KEYS[index], '-inf', now_ms - life, 'LIMIT', 0, EXPIRED_MAX)
  if ended[1] then call('ZREM', KEYS[index], unpack(ended)) end
end
local function list_run(run, runs, all, known, life)
  local of_all, of_agent = string.match(KEYS[run], '/run/([^/]+/(.+))$')
  call('HSET', KEYS[run], 'last', format('%d', now_ms))
  call('PEXPIRE', KEYS[run], life)
  list_in(runs, of_agent, life)
  list_in(all, of_all, life)
  if not known then call('HSET', KEYS[run], 'first', format('%d', now_ms)) end
end
