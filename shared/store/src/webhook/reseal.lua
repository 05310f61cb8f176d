-- Purpose: replace the sealed text of a webhook's secret by one under the newest master key, unless another secret was
--   set meanwhile.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `old` and `new` are sealed texts
-- Returns: {'done'} | {'changed'} (it is not the old text; nothing changed) | {'no_account'}
-- Cost: O(1); 7 calls
if call('HGET', KEYS.webhook, ARGV.field) ~= ARGV.old then return {'changed'} end

call('HSET', KEYS.webhook, ARGV.field, ARGV.new)
recorded()
return {'done'}
