-- Purpose: revoke a virtual key. It is refused from the next proxied call on. Its record stays for the lists.
-- KEYS: of a change, then as script.rs names them. `active_keys` are those of the account
-- ARGV: of a change, then as script.rs names them
-- Returns: {'revoked'} | {'missing'} (not a key of this agent, or revoked already) | {'no_account'}
-- Cost: O(log keys of the account); 9 calls
if not call('ZSCORE', KEYS.agent_keys, ARGV.key_id) then return {'missing'} end
if call('ZREM', KEYS.active_keys, ARGV.key_id) == 0 then return {'missing'} end

call('HSET', KEYS.virtual_key, 'revoked_at', now)
recorded()
return {'revoked'}
