-- Purpose: revoke an API key; its record stays, so that lists still show it.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change
-- Returns: {'revoked'} | {'missing'} (no such key in this mode, or revoked already) | {'no_account'}
-- Cost: O(1); 7 calls
local key = call('HMGET', KEYS.api_key, 'mode', 'revoked_at')
if key[1] ~= ARGV.mode or key[2] then return {'missing'} end

call('HSET', KEYS.api_key, 'revoked_at', now)
recorded()
return {'revoked'}
