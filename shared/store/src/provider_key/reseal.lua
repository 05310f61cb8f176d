-- Purpose: put a provider key that was sealed again under the newest master key in the place of its old sealed text,
--   unless somebody stored another key meanwhile.
-- KEYS: of a change, then as reseal.rs names them
-- ARGV: of a change, then as reseal.rs names them. `field` is that of the sealed key; `old` and `new` are sealed texts
-- Returns: {'done'} | {'changed'} (it is no longer the old text; nothing changed) | {'no_account'}
-- Cost: O(1); 7 calls
if redis.call('HGET', KEYS.agent, ARGV.field) ~= ARGV.old then return {'changed'} end

redis.call('HSET', KEYS.agent, ARGV.field, ARGV.new)
recorded()
return {'done'}
