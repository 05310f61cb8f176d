-- Purpose: remember on another server how far an account has come, so that the loss of its own server's last writes is
--   noticed by whoever serves it next (decision D47). What is remembered never goes back.
-- KEYS: 1 what the bucket witnesses (hash of account id to '<generation> <version>')
-- ARGV: 1 account id  2 generation  3 version
-- Returns: {'noted'} | {'known'} (that much or more was remembered)
-- Cost: O(1); 1 or 2 calls
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known then
  local generation, version = string.match(known, '^(%d+) (%d+)$')
  local newer = tonumber(generation or '0') - tonumber(ARGV[2])
  if newer == 0 then newer = tonumber(version or '0') - tonumber(ARGV[3]) end
  if newer >= 0 then return {'known'} end
end

redis.call('HSET', KEYS[1], ARGV[1], string.format('%s %s', ARGV[2], ARGV[3]))
return {'noted'}
