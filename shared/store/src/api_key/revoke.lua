-- Purpose: revoke an API key; its record stays, so that lists still show it.
-- KEYS: 1 account record  2 audit log  3 API key
-- ARGV: 1 mode  2 audit entry
-- Returns: {'revoked'} | {'missing'} (no such key in this mode, or revoked already) | {'no_account'}
-- Cost: O(1); 7 calls
local key = redis.call('HMGET', KEYS[3], 'mode', 'revoked_at')
if key[1] ~= ARGV[1] or key[2] then return {'missing'} end

redis.call('HSET', KEYS[3], 'revoked_at', now)
recorded()
return {'revoked'}
