-- Purpose: replace the imported prices, unless they have changed since they were read.
-- KEYS: as prices.rs names them
-- ARGV: as prices.rs names them. `old` is the text that was read ('' = none)
-- Returns: {'done'} | {'changed'} (nothing changed)
-- Cost: O(length of the texts); 2 calls
if (call('GET', KEYS.prices) or '') ~= ARGV.old then return {'changed'} end
call('SET', KEYS.prices, ARGV.new)
return {'done'}
