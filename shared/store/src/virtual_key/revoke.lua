-- Purpose: revoke a virtual key: from the next proxied call on it is unknown. Its record stays for the lists.
-- KEYS: 1 account record  2 audit log  3 active virtual keys  4 the agent's virtual keys  5 virtual key
-- ARGV: 1 mode  2 audit entry  3 key id
-- Returns: {'revoked'} | {'missing'} (not a key of this agent, or revoked already) | {'no_account'}
-- Cost: O(log keys of the account); 9 calls
if not redis.call('ZSCORE', KEYS[4], ARGV[3]) then return {'missing'} end
if redis.call('ZREM', KEYS[3], ARGV[3]) == 0 then return {'missing'} end

redis.call('HSET', KEYS[5], 'revoked_at', now)
recorded()
return {'revoked'}
