-- Purpose: let go of the oldest sealed entries, which lie in a segment of the archive by now: their lines, hashes and places
--   in the indexes; and keep what describes the segment. Of several archivers the first one counts. What webhooks were not told
--   of yet goes as well: the dispatcher reads it from the archive.
-- KEYS: 1 audit lines  2 their hashes  3 what was archived before  4 segments  5 counts of what is archived
--   6 and on: lists of the index
-- ARGV: 1 number of the first entry  2 how many entries  3 hash of the last one  4 description of the segment
--   5 and on, for each list: its name among the counts, how many of its numbers are in the segment
-- Returns: {'archived'} | {'moved'} (the oldest entry is another one) | {<key>, 'disagree'} (hashes or indexes were changed by
--   hand)
-- Cost: O(entries); 7 calls, and 4 a list
local first, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = first + count - 1
if tonumber(redis.call('HGET', KEYS[3], 'seq') or '0') + 1 ~= first then return {'moved'} end
if redis.call('LINDEX', KEYS[2], count - 1) ~= ARGV[3] then return {KEYS[2], 'disagree'} end
if redis.call('LLEN', KEYS[1]) < count then return {KEYS[1], 'disagree'} end
for list = 6, #KEYS do
  local numbers = tonumber(ARGV[list * 2 - 6])
  local newest, next = redis.call('LINDEX', KEYS[list], numbers - 1), redis.call('LINDEX', KEYS[list], numbers)
  if tonumber(newest or '0') < first or tonumber(newest or '0') > last then return {KEYS[list], 'disagree'} end
  if next and tonumber(next) <= last then return {KEYS[list], 'disagree'} end
end

redis.call('LTRIM', KEYS[1], count, -1)
redis.call('LTRIM', KEYS[2], count, -1)
redis.call('HSET', KEYS[3], 'seq', string.format('%d', last), 'hash', ARGV[3])
redis.call('RPUSH', KEYS[4], ARGV[4])
for list = 6, #KEYS do
  redis.call('LTRIM', KEYS[list], ARGV[list * 2 - 6], -1)
  redis.call('HINCRBY', KEYS[5], ARGV[list * 2 - 7], ARGV[list * 2 - 6])
end
return {'archived'}
