-- Purpose: write the record of a rate window that has ended: one audit entry for the denials of a key and reason beyond those
--   that have one each (decision D70). The count goes with it, so the record is written once, whoever else tries.
-- KEYS: 1 account record  2 audit log  3 counted denials of the bucket
-- ARGV: 1 mode ('live')  2 audit entry  3 field of the window  4 its count that the entry was made of  5 end of the window in ms
-- Returns: {'recorded'} | {'early'} (the window is open)  | {'changed'} (the count is another one, or gone) | {'no_account'};
--   only the first writes anything
-- Cost: O(1); 7 calls
if now_ms < tonumber(ARGV[5]) then return {'early'} end
if redis.call('HGET', KEYS[3], ARGV[3]) ~= ARGV[4] then return {'changed'} end

redis.call('HDEL', KEYS[3], ARGV[3])
recorded()
return {'recorded'}
