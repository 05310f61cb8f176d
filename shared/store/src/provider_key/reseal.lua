-- Purpose: put a provider key that was sealed again under the newest master key in the place of its old sealed text,
--   unless somebody stored another key meanwhile.
-- KEYS: 1 account record  2 audit log  3 agent
-- ARGV: 1 mode ('live')  2 audit entry  3 field of the sealed key  4 its old text  5 its new text
-- Returns: {'done'} | {'changed'} (it is no longer the old text; nothing changed) | {'no_account'}
-- Cost: O(1); 7 calls
if redis.call('HGET', KEYS[3], ARGV[3]) ~= ARGV[4] then return {'changed'} end

redis.call('HSET', KEYS[3], ARGV[3], ARGV[5])
recorded()
return {'done'}
