-- Purpose: open the account's user wallet (decision D16).
-- KEYS: 1 account record  2 audit log  3 user wallet
-- ARGV: 1 mode  2 audit entry  3 number  4 id
-- Returns: {'opened'} | {'exists'} | {'no_account'}
-- Cost: O(1); 7 calls
if redis.call('EXISTS', KEYS[3]) == 1 then return {'exists'} end

redis.call('HSET', KEYS[3], 'wallet_number', ARGV[3], 'wallet', ARGV[4], 'balance', '0', 'created_at', now,
  'updated_at', now)
recorded()
return {'opened'}
