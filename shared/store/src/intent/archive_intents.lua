-- Purpose: let go of intents that lie in a segment of the archive by now: of their records and their places in the
--   lists; and keep what describes the segment. All leave at once, if each of them still is what was archived.
-- KEYS: as archive.rs names them. `intents` is the list of all; `records` are those of the intents, then their other
--   lists, and last the account record
-- ARGV: as archive.rs names them. `segments` is how many there were, `descriptor` that of the segment. `intents` are
--   `count` in a row, each as archive.rs names it: `lists` are which of the keys its three other lists are. Last: field
--   of the account that counts the text of the intents
-- Returns: 'archived' | 'changed' (somebody else archived meanwhile, or an intent is another one)
-- Cost: O(intents + what is before them in their lists: PASSED_MAX places, which the caller counts); 6 calls an intent
--   and 3
local count = tonumber(ARGV.count)
if redis.call('LLEN', KEYS.segments) ~= tonumber(ARGV.segments) then return 'changed' end
local bytes = 0
for n = 0, count - 1 do
  local there = redis.call('HMGET', KEYS[@KEYS.records + n], 'state', 'head', 'request')
  if there[1] ~= ARGV[@ARGV.state + 6 * n] or there[2] ~= ARGV[@ARGV.head + 6 * n] then return 'changed' end
  bytes = bytes + #(there[3] or '')
end

for n = 0, count - 1 do
  local at = @ARGV.id + 6 * n
  redis.call('DEL', KEYS[@KEYS.records + n])
  redis.call('LREM', KEYS.intents, 1, ARGV[at])
  for list = at + 3, at + 5 do redis.call('LREM', KEYS[tonumber(ARGV[list])], 1, ARGV[at]) end
end
redis.call('HINCRBY', KEYS[#KEYS], ARGV[#ARGV], -bytes)
redis.call('RPUSH', KEYS.segments, ARGV.descriptor)
return 'archived'
