-- Fragment: the budget of runs (decision D71). Needs clock.lua. Counts the runs in the index KEYS[all] that were seen
--   in the last `life` ms: the records of the others have ended (decision D38), also where run.lua has not dropped them
--   yet.
local function live_runs(all, life)
  return call('ZCOUNT', KEYS[all], format('(%d', now_ms - life), '+inf')
end
