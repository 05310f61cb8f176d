-- Purpose: block a range of addresses, or let it in again; both servers follow within seconds (decision D11). The list's
--   version is written in any case, so that who waits until the list is safe waits for this write.
-- KEYS: 1 blocked addresses
-- ARGV: 1 'block' | 'unblock'  2 range  3 reason ('' = none given)  4 most ranges  5 random part of a new version
-- Returns: {'done'} | {'already'} (nothing changed) | {'too_many'}
-- Cost: O(1); 6 calls
local version = redis.call('HGET', KEYS[1], 'version') or ''
-- One of an earlier release has no count.
local count = tonumber(version:match('^(%d+)-') or '0')
local following = string.format('%d', count + 1) .. '-' .. ARGV[5]

local function unchanged()
  redis.call('HSET', KEYS[1], 'version', version == '' and following or version)
  return {'already'}
end

local known = redis.call('HGET', KEYS[1], ARGV[2])
if ARGV[1] == 'unblock' then
  if not known then return unchanged() end
  redis.call('HDEL', KEYS[1], ARGV[2])
  redis.call('HSET', KEYS[1], 'version', following)
  return {'done'}
end

local since = string.format('%d', now_ms)
if known then
  -- It stays blocked since then; another reason replaces the one before.
  local then_ms, reason = known:match('^(%d+) (.*)$')
  if ARGV[3] == '' or ARGV[3] == reason then return unchanged() end
  since = then_ms
elseif redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], 'version') >= tonumber(ARGV[4]) then
  return {'too_many'}
end
redis.call('HSET', KEYS[1], ARGV[2], string.format('%s %s', since, ARGV[3]), 'version', following)
return {'done'}
