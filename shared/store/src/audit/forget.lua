-- Purpose: remove the look-ups of archived decisions, and store how far this was done.
-- KEYS: as archive.rs names them. `base` is the archived extent; `decisions` are texts whose entries are all archived
-- ARGV: as archive.rs names them. `done` is the last entry whose decision needs no look-up any more; `lengths` are the
--   lengths of the texts when this was determined
-- Returns: the number of removed texts; a text that has grown meanwhile stays
-- Cost: O(texts); 2 calls, and 2 per text
local gone = 0
local before = tonumber(call('HGET', KEYS.base, 'forgotten') or '0')
for text = @KEYS.decisions, #KEYS do
  if call('STRLEN', KEYS[text]) == tonumber(ARGV[text]) then
    gone = gone + call('UNLINK', KEYS[text])
  end
end
if tonumber(ARGV.done) > before then call('HSET', KEYS.base, 'forgotten', ARGV.done) end
return gone
