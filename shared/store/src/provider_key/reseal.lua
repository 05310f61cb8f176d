-- Purpose: replace the sealed text of a provider key by one under the newest master key, unless another key was stored
--   meanwhile.
-- KEYS: of a change, then as reseal.rs names them
-- ARGV: of a change, then as reseal.rs names them. `field` is that of the sealed key; `old` and `new` are sealed texts
-- Returns: {'done'} | {'changed'} (it is not the old text; nothing changed) | {'no_account'}
-- Cost: O(1); 8 calls
if call('HGET', KEYS.agent, ARGV.field) ~= ARGV.old then return {'changed'} end

call('HSET', KEYS.agent, ARGV.field, ARGV.new)
count_kept_text(#ARGV.new - #ARGV.old)
recorded()
return {'done'}
