-- Purpose: keep the hashes of audit entries, which Rust computed from their lines, and index the entries. All sealers compute
--   the same, so of several that race the first one counts and the others change nothing.
-- KEYS: 1 audit lines  2 their hashes  3 what was archived before  4 and on: lists of numbers, then texts of decisions
-- ARGV: 1 number of the first entry  2 hash of the entry before it  3 how many entries  4 how many lists  5 and on: the hashes;
--   then for each list how many numbers and the numbers; then for each text what is appended to it
-- Returns: {'sealed'} | {'moved'} (the next entry to be sealed is another one) | {'disagree'} (the hash before is another one:
--   lines or hashes were changed by hand, or another version computes other entries)
-- Cost: O(entries); 5 calls, and one a list and text
local base = redis.call('HMGET', KEYS[3], 'seq', 'hash')
local sealed, count, lists = redis.call('LLEN', KEYS[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if tonumber(base[1] or '0') + sealed + 1 ~= tonumber(ARGV[1]) then return {'moved'} end
if redis.call('LLEN', KEYS[1]) < sealed + count then return {'moved'} end
local before = sealed > 0 and redis.call('LINDEX', KEYS[2], -1) or base[2] or ''
if before ~= ARGV[2] then return {'disagree'} end

redis.call('RPUSH', KEYS[2], unpack(ARGV, 5, 4 + count))
local at = 5 + count
for list = 4, 3 + lists do
  local numbers = tonumber(ARGV[at])
  redis.call('RPUSH', KEYS[list], unpack(ARGV, at + 1, at + numbers))
  at = at + 1 + numbers
end
for text = 4 + lists, #KEYS do
  redis.call('APPEND', KEYS[text], ARGV[at])
  at = at + 1
end
return {'sealed'}
