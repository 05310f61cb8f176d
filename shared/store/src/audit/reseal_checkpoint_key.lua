-- Purpose: put the key of checkpoints that was sealed again under the newest master key in the place of its old sealed text,
--   unless somebody else did so.
-- KEYS: 1 the store's record
-- ARGV: 1 field of the sealed key  2 its old text  3 its new text
-- Returns: {'done'} | {'changed'} (it is no longer the old text; nothing changed)
-- Cost: O(1); 2 calls
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return {'changed'} end

redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return {'done'}
