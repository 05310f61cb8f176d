-- Purpose: let go of the oldest sealed entries, which lie in a segment of the archive by now: their lines, hashes and
--   places in the indexes; and keep what describes the segment. Of several archivers the first one counts. What
--   webhooks were not told of yet goes as well: the dispatcher reads it from the archive.
-- KEYS: as archive.rs names them. `base` says what was archived before
-- ARGV: as archive.rs names them. `hash` is that of the last entry, `descriptor` describes the segment. `lists`: of
--   each its name among the counts, and how many of its numbers are in the segment
-- Returns: {'archived'} | {'moved'} (the oldest entry is another one) | {<key>, 'disagree'} (hashes or indexes were
--   changed by hand)
-- Cost: O(entries); 7 calls, and 4 a list
local first, count = tonumber(ARGV.first), tonumber(ARGV.count)
local last = first + count - 1
if tonumber(redis.call('HGET', KEYS.base, 'seq') or '0') + 1 ~= first then return {'moved'} end
if redis.call('LINDEX', KEYS.hashes, count - 1) ~= ARGV.hash then return {KEYS.hashes, 'disagree'} end
if redis.call('LLEN', KEYS.audit_log) < count then return {KEYS.audit_log, 'disagree'} end
for list = @KEYS.lists, #KEYS do
  local numbers = tonumber(ARGV[list * 2 - 6])
  local newest, next = redis.call('LINDEX', KEYS[list], numbers - 1), redis.call('LINDEX', KEYS[list], numbers)
  if tonumber(newest or '0') < first or tonumber(newest or '0') > last then return {KEYS[list], 'disagree'} end
  if next and tonumber(next) <= last then return {KEYS[list], 'disagree'} end
end

redis.call('LTRIM', KEYS.audit_log, count, -1)
redis.call('LTRIM', KEYS.hashes, count, -1)
redis.call('HSET', KEYS.base, 'seq', string.format('%d', last), 'hash', ARGV.hash)
redis.call('RPUSH', KEYS.segments, ARGV.descriptor)
for list = @KEYS.lists, #KEYS do
  redis.call('LTRIM', KEYS[list], ARGV[list * 2 - 6], -1)
  redis.call('HINCRBY', KEYS.archived_counts, ARGV[list * 2 - 7], ARGV[list * 2 - 6])
end
return {'archived'}
