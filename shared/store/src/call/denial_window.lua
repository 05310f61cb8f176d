-- Purpose: write the record of a rate window that has ended: one audit entry for the denials of a key and reason beyond
--   those that have one each (decision D70). The count goes with it, so the record is written once, whoever else tries.
-- KEYS: of a change, then as denial_windows/script.rs names them. `counted_denials` are those of the bucket
-- ARGV: of a change, then as denial_windows/script.rs names them. `field` is that of the window, `count` the one that
--   the entry was made of, `ends` the end of the window in ms
-- Returns: {'recorded'} | {'early'} (the window is open) | {'changed'} (the count is another one, or gone)
--   | {'no_account'}; only the first writes anything
-- Cost: O(1); 7 calls
if now_ms < tonumber(ARGV.ends) then return {'early'} end
if redis.call('HGET', KEYS.counted_denials, ARGV.field) ~= ARGV.count then return {'changed'} end

redis.call('HDEL', KEYS.counted_denials, ARGV.field)
recorded()
return {'recorded'}
