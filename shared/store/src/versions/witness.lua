-- Purpose: record an account's version on another server, so that after a failover the loss of the last writes of the
--   account's own server is detected (decision D47). The recorded version never decreases.
-- KEYS: as witness.rs names them. `witnessed` is a hash of account id to '<generation> <version>'
-- ARGV: as witness.rs names them
-- Returns: {'noted'} | {'known'} (this version or a newer one was recorded)
-- Cost: O(1); 1 or 2 calls
local known = call('HGET', KEYS.witnessed, ARGV.account)
if known then
  local generation, version = string.match(known, '^(%d+) (%d+)$')
  local newer = tonumber(generation or '0') - tonumber(ARGV.generation)
  if newer == 0 then newer = tonumber(version or '0') - tonumber(ARGV.version) end
  if newer >= 0 then return {'known'} end
end

call('HSET', KEYS.witnessed, ARGV.account, format('%s %s', ARGV.generation, ARGV.version))
return {'noted'}
