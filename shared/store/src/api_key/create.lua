-- Purpose: create an API key of an account. If the account has the maximum of keys, a revoked one is removed.
-- KEYS: of a change, then as script.rs names them. `revoked` is the revoked key to remove if necessary (any key if
--   `revoked_id` is '')
-- ARGV: of a change, then as script.rs names them. `revoked_id` is '' if no key is to be removed. Last: budgets
-- Returns: {'created'} | {'exists'} | {'too_many'} (and `revoked` is not revoked, or no longer exists)
--   | {'over_budget', kind} | {'no_account'}
-- Cost: O(log keys of the account); up to 14 calls
if call('EXISTS', KEYS.api_key) == 1 then return {'exists'} end
local full = call('ZCARD', KEYS.api_keys) >= tonumber(ARGV.keys_max)
if full and (ARGV.revoked_id == '' or not call('HGET', KEYS.revoked, 'revoked_at')) then return {'too_many'} end
if is_full('keys', call('HGET', KEYS.account, 'key_seq') or '0') then return over_budget('keys') end

local words
if full then
  call('DEL', KEYS.revoked)
  call('ZREM', KEYS.api_keys, ARGV.revoked_id)
  words = format('dropped_key_id=%s', ARGV.revoked_id)
end
call('HSET', KEYS.api_key, 'id', ARGV.key_id, 'mode', ARGV.mode, 'created_at', now, unpack(ARGV, @ARGV.fields))
call('ZADD', KEYS.api_keys, call('HINCRBY', KEYS.account, 'key_seq', 1), ARGV.key_id)
recorded(words)
return {'created'}
