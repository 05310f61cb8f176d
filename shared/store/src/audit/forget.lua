-- Purpose: let go of the look-ups of decisions that are archived, and keep in mind how far that was done.
-- KEYS: 1 what was archived  2 and on: texts of decisions, all of whose entries are archived
-- ARGV: 1 the last entry whose decision needs no look-up any more  2 and on: how long each text was when that was found out
-- Returns: how many were let go of; one that has grown meanwhile stays
-- Cost: O(texts); 2 calls, and 2 a text
local gone = 0
local before = tonumber(redis.call('HGET', KEYS[1], 'forgotten') or '0')
for text = 2, #KEYS do
  if redis.call('STRLEN', KEYS[text]) == tonumber(ARGV[text]) then
    gone = gone + redis.call('UNLINK', KEYS[text])
  end
end
if tonumber(ARGV[1]) > before then redis.call('HSET', KEYS[1], 'forgotten', ARGV[1]) end
return gone
