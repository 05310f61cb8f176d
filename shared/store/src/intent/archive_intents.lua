-- Purpose: let go of intents that lie in a segment of the archive by now: of their records and their places in the lists; and
--   keep what describes the segment. All leave at once, if each of them still is what was archived.
-- KEYS: 1 segments of intents  2 list of all intents  3 and on: the records, then the other lists  last: account record
-- ARGV: 1 how many segments there were  2 description of the segment  3 how many intents
--   4 and on, for each intent: id, state, hash of its timeline's end, and which of the keys its three other lists are
--   last: field of the account that counts the text of the intents
-- Returns: 'archived' | 'changed' (somebody else archived meanwhile, or an intent is another one)
-- Cost: O(intents + what is before them in their lists: PASSED_MAX places, which the caller counts); 6 calls an intent and 3
local count = tonumber(ARGV[3])
if redis.call('LLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 'changed' end
local bytes = 0
for n = 0, count - 1 do
  local there = redis.call('HMGET', KEYS[3 + n], 'state', 'head', 'request')
  if there[1] ~= ARGV[5 + 6 * n] or there[2] ~= ARGV[6 + 6 * n] then return 'changed' end
  bytes = bytes + #(there[3] or '')
end

for n = 0, count - 1 do
  local at = 4 + 6 * n
  redis.call('DEL', KEYS[3 + n])
  redis.call('LREM', KEYS[2], 1, ARGV[at])
  for list = at + 3, at + 5 do redis.call('LREM', KEYS[tonumber(ARGV[list])], 1, ARGV[at]) end
end
redis.call('HINCRBY', KEYS[#KEYS], ARGV[#ARGV], -bytes)
redis.call('RPUSH', KEYS[1], ARGV[2])
return 'archived'
