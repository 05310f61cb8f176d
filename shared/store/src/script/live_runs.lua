-- Fragment: the budget of runs (decision D71). Needs clock.lua. Counts the runs in the index KEYS[all] that had a call
-- in the last `life` ms. The records of the others have ended (decision D38), even if run.lua has not removed their
-- index entries yet.
local function live_runs(all, life)
  return call('ZCOUNT', KEYS[all], format('(%d', now_ms - life), '+inf')
end
