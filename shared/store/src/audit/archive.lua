-- Purpose: remove the oldest sealed entries, which are in a segment of the archive: their lines, hashes and index
--   entries; and store the descriptor of the segment. Of several archivers the first one succeeds. Entries that were
--   not dispatched to webhooks yet are removed too: the dispatcher reads them from the archive.
-- KEYS: as archive.rs names them. `base` is the extent archived before
-- ARGV: as archive.rs names them. `hash` is that of the last entry, `descriptor` describes the segment. `lists`: for
--   each list its name among the counts, and how many of its numbers are in the segment. `text` is what change.lua
--   counted of the lines in the segment, in the field `text_field` of the account
-- Returns: {'archived'} | {'moved'} (the oldest entry is another one) | {<key>, 'disagree'} (hashes or indexes were
--   changed manually)
-- Cost: O(entries); 8 calls, 1 or 2 more where a line is long, and 4 per list
local first, count = tonumber(ARGV.first), tonumber(ARGV.count)
local last = first + count - 1
if tonumber(call('HGET', KEYS.base, 'seq') or '0') + 1 ~= first then return {'moved'} end
if call('LINDEX', KEYS.hashes, count - 1) ~= ARGV.hash then return {KEYS.hashes, 'disagree'} end
if call('LLEN', KEYS.audit_log) < count then return {KEYS.audit_log, 'disagree'} end
for list = @KEYS.lists, #KEYS do
  local numbers = tonumber(ARGV[list * 2 - 6])
  local newest, next = call('LINDEX', KEYS[list], numbers - 1), call('LINDEX', KEYS[list], numbers)
  if tonumber(newest or '0') < first or tonumber(newest or '0') > last then return {KEYS[list], 'disagree'} end
  if next and tonumber(next) <= last then return {KEYS[list], 'disagree'} end
end

call('LTRIM', KEYS.audit_log, count, -1)
call('LTRIM', KEYS.hashes, count, -1)
call('HSET', KEYS.base, 'seq', format('%d', last), 'hash', ARGV.hash)
call('RPUSH', KEYS.segments, ARGV.descriptor)
-- Descriptors, and a count for each list, stay in the store for ever.
local kept_bytes = #ARGV.descriptor
for list = @KEYS.lists, #KEYS do
  local name, numbers = ARGV[list * 2 - 7], ARGV[list * 2 - 6]
  call('LTRIM', KEYS[list], numbers, -1)
  local is_new = call('HINCRBY', KEYS.archived_counts, name, numbers) == tonumber(numbers)
  if is_new then kept_bytes = kept_bytes + #name end
end
call('HINCRBY', KEYS.base, 'kept_bytes', kept_bytes)
if ARGV.text ~= '0' and call('HINCRBY', KEYS.account, ARGV.text_field, format('-%s', ARGV.text)) < 0 then
  call('HSET', KEYS.account, ARGV.text_field, '0')
end
return {'archived'}
