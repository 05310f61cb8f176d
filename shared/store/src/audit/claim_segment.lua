-- Purpose: agree on the last entry of the next segment before it is written. So archivers that race, and one that goes
--   on after another was killed, write the same objects, and no segment that nobody refers to stays in the archive
-- KEYS: as archive.rs names them. `base` has the extent archived before, and the claim: first and last entry
-- ARGV: as archive.rs names them. `unusable` is a claim's last entry that the caller cannot reach, or 0
-- Returns: {<last entry>} (the caller's, or that of an earlier claim) | {'moved'} (the oldest entry is another one)
-- Cost: 3 calls
if tonumber(call('HGET', KEYS.base, 'seq') or '0') + 1 ~= tonumber(ARGV.first) then return {'moved'} end
local first, last = string.match(call('HGET', KEYS.base, 'claim') or '', '^(%d+) (%d+)$')
if first == ARGV.first and last ~= ARGV.unusable then return {last} end

call('HSET', KEYS.base, 'claim', ARGV.first .. ' ' .. ARGV.last)
return {ARGV.last}
