-- Purpose: take a pending deposit back that will not arrive: its wallet waits for it no longer. Its reference stays
--   used.
-- KEYS: of a change, then as cancel.rs names them
-- ARGV: of a change, then as cancel.rs names them. `amount` is in nanos
-- Returns: {'cancelled'} | {'again'} (it was taken back before) | {'confirmed'} (its money is there) | {'missing'} |
--   {'no_account'}; only the first writes anything
-- Cost: O(1); 8 calls
local state = call('HGET', KEYS.deposit, 'state')
if not state then return {'missing'} end
if state == 'cancelled' then return {'again'} end
if state ~= 'pending' then return {'confirmed'} end

-- A wallet that is another one now never waited for it.
if call('HGET', KEYS.wallet, 'wallet_number') == ARGV.wallet_number then
  call('HINCRBY', KEYS.wallet, 'pending', format('-%s', ARGV.amount))
  call('HSET', KEYS.wallet, 'updated_at', now)
end
call('HSET', KEYS.deposit, 'state', 'cancelled', 'cancelled_at', now)
recorded()
return {'cancelled'}
