-- Purpose: block or unblock a range of addresses; both servers apply it within seconds (decision D11). The list's
--   version is written in any case, so that a caller who waits for durability waits for this write.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them. `action` is 'block' or 'unblock'; `reason` is '' if none was given; `random` is part
--   of a new version
-- Returns: {'done'} | {'already'} (nothing changed) | {'too_many'}
-- Cost: O(1); 6 calls
local version = call('HGET', KEYS.blocked, 'version') or ''
local count = tonumber(version:match('^(%d+)-') or '0')
local following = format('%d', count + 1) .. '-' .. ARGV.random

local function unchanged()
  call('HSET', KEYS.blocked, 'version', version == '' and following or version)
  return {'already'}
end

local known = call('HGET', KEYS.blocked, ARGV.range)
if ARGV.action == 'unblock' then
  if not known then return unchanged() end
  call('HDEL', KEYS.blocked, ARGV.range)
  call('HSET', KEYS.blocked, 'version', following)
  return {'done'}
end

local since = format('%d', now_ms)
if known then
  -- It stays blocked since the original time; the new reason replaces the old one.
  local then_ms, reason = known:match('^(%d+) (.*)$')
  if ARGV.reason == '' or ARGV.reason == reason then return unchanged() end
  since = then_ms
elseif call('HLEN', KEYS.blocked) - call('HEXISTS', KEYS.blocked, 'version') >= tonumber(ARGV.ranges_max) then
  return {'too_many'}
end
call('HSET', KEYS.blocked, ARGV.range, format('%s %s', since, ARGV.reason), 'version', following)
return {'done'}
