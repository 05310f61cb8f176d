-- Purpose: let go of the look-ups of decisions that are archived, and keep in mind how far that was done.
-- KEYS: as archive.rs names them. `base` says what was archived; `decisions` are texts, all of whose entries are
--   archived
-- ARGV: as archive.rs names them. `done` is the last entry whose decision needs no look-up any more; `lengths` are
--   those of the texts when that was found out
-- Returns: how many were let go of; one that has grown meanwhile stays
-- Cost: O(texts); 2 calls, and 2 a text
local gone = 0
local before = tonumber(redis.call('HGET', KEYS.base, 'forgotten') or '0')
for text = @KEYS.decisions, #KEYS do
  if redis.call('STRLEN', KEYS[text]) == tonumber(ARGV[text]) then
    gone = gone + redis.call('UNLINK', KEYS[text])
  end
end
if tonumber(ARGV.done) > before then redis.call('HSET', KEYS.base, 'forgotten', ARGV.done) end
return gone
