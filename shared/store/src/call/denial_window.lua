-- Purpose: write the record of a rate window that has ended: one audit entry for the denials of a key and reason that
--   have none of their own (decision D70). The count is removed at the same time, so the record is written once,
--   however many workers try.
-- KEYS: of a change, then as denial_windows/script.rs names them. `counted_denials` is the hash of the bucket
-- ARGV: of a change, then as denial_windows/script.rs names them. `field` is that of the window, `count` the one that
--   the entry was built from, `ends` the end of the window in ms
-- Returns: {'recorded'} | {'early'} (the window is open) | {'changed'} (the count differs or is gone) | {'no_account'};
--   only the first writes anything
-- Cost: O(1); 7 calls
if now_ms < tonumber(ARGV.ends) then return {'early'} end
if call('HGET', KEYS.counted_denials, ARGV.field) ~= ARGV.count then return {'changed'} end

call('HDEL', KEYS.counted_denials, ARGV.field)
recorded()
return {'recorded'}
