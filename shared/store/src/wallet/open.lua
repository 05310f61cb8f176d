-- Purpose: open the account's user wallet (decision D16), with its place.
-- KEYS: 1 account record  2 audit log  3 user wallet  4 place of its number
-- ARGV: 1 mode  2 audit entry  3 number  4 id  5 what the place says
-- Returns: {'opened'} | {'exists'} | {'taken'} (the number has a place; nothing happened, draw another) | {'no_account'}
-- Cost: O(1); 9 calls
if redis.call('EXISTS', KEYS[3]) == 1 then return {'exists'} end
if redis.call('EXISTS', KEYS[4]) == 1 then return {'taken'} end

redis.call('SET', KEYS[4], ARGV[5])
redis.call('HSET', KEYS[3], 'wallet_number', ARGV[3], 'wallet', ARGV[4], 'balance', '0', 'created_at', now,
  'updated_at', now)
recorded()
return {'opened'}
