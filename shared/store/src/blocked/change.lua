-- Purpose: block a range of addresses, or let it in again; both servers follow within seconds (decision D11).
-- KEYS: 1 blocked addresses
-- ARGV: 1 'block' | 'unblock'  2 range  3 reason ('' = none given)  4 most ranges  5 new version of the list
-- Returns: {'done'} | {'already'} (nothing changed) | {'too_many'}
-- Cost: O(1); 5 calls
local known = redis.call('HGET', KEYS[1], ARGV[2])
if ARGV[1] == 'unblock' then
  if not known then return {'already'} end
  redis.call('HDEL', KEYS[1], ARGV[2])
  redis.call('HSET', KEYS[1], 'version', ARGV[5])
  return {'done'}
end

local since = string.format('%d', now_ms)
if known then
  -- It stays blocked since then; another reason replaces the one before.
  local then_ms, reason = known:match('^(%d+) (.*)$')
  if ARGV[3] == '' or ARGV[3] == reason then return {'already'} end
  since = then_ms
elseif redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], 'version') >= tonumber(ARGV[4]) then
  return {'too_many'}
end
redis.call('HSET', KEYS[1], ARGV[2], string.format('%s %s', since, ARGV[3]), 'version', ARGV[5])
return {'done'}
