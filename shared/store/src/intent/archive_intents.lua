-- Purpose: remove intents that are in a segment of the archive: their records and their list entries; and store the
--   descriptor of the segment. All are removed at once, and only if each of them still equals the archived one.
-- KEYS: as archive.rs names them. `intents` is the list of all intents; `records` are those of the intents, then their
--   other lists, and last the account record
-- ARGV: as archive.rs names them. `segments` is the previous number of segments, `descriptor` that of the segment.
--   `intents` has `count` entries in a row, each as archive.rs names it: `lists` are the positions of its three other
--   lists among the keys. Last: field of the account that counts the text of the intents
-- Returns: 'archived' | 'changed' (another archiver was faster, or an intent differs)
-- Cost: O(intents + elements before them in their lists, at most PASSED_MAX, which the caller counts); 6 calls per
--   intent and 4
local count = tonumber(ARGV.count)
if call('LLEN', KEYS.segments) ~= tonumber(ARGV.segments) then return 'changed' end
local bytes = 0
for n = 0, count - 1 do
  local there = call('HMGET', KEYS[@KEYS.records + n], 'state', 'head', 'request', 'note')
  if there[1] ~= ARGV[@ARGV.state + 6 * n] or there[2] ~= ARGV[@ARGV.head + 6 * n] then return 'changed' end
  bytes = bytes + #(there[3] or '') + #(there[4] or '')
end

for n = 0, count - 1 do
  local at = @ARGV.id + 6 * n
  call('DEL', KEYS[@KEYS.records + n])
  call('LREM', KEYS.intents, 1, ARGV[at])
  for list = at + 3, at + 5 do call('LREM', KEYS[tonumber(ARGV[list])], 1, ARGV[at]) end
end
-- An earlier version did not count notes: where it made the intents, the count may be too low until they are archived.
if call('HINCRBY', KEYS[#KEYS], ARGV[#ARGV], -bytes) < 0 then call('HSET', KEYS[#KEYS], ARGV[#ARGV], 0) end
call('RPUSH', KEYS.segments, ARGV.descriptor)
return 'archived'
