-- Purpose: open the account's user wallet (decision D16), with its place.
-- KEYS: of a change, then as script.rs names them. `wallet` is the user wallet; `place` is that of its number
-- ARGV: of a change, then as script.rs names them. `place` is the value of the place
-- Returns: {'opened'} | {'exists'} | {'taken'} (the number is in use; nothing changed, draw another)
--   | {'no_account'}
-- Cost: O(1); 9 calls
if call('EXISTS', KEYS.wallet) == 1 then return {'exists'} end
if call('EXISTS', KEYS.place) == 1 then return {'taken'} end

call('SET', KEYS.place, ARGV.place)
call('HSET', KEYS.wallet, 'wallet_number', ARGV.number, 'wallet', ARGV.id, 'balance', '0', 'created_at', now,
  'updated_at', now)
recorded()
return {'opened'}
