-- Purpose: let what left another account arrive in this one, once (decision D28): money in a wallet, an escrow that is over,
--   the intent of a call that this account made on another account's escrow.
-- KEYS: of a change, then as script.rs names them. `wallet` is its leg; `arrival` is the mark of the arrival; `open_escrows` are
--   those of the wallet that it was sent to
-- ARGV: of a change, then as script.rs names them. `amount` is in nanos ('' = no money), `escrow` the number ('' = none),
--   `intent` '' when there is none. `fields` are those of the intent
-- Returns: {'done'} | {'again'} (it arrived before) | {'closed'} (the wallet is not that one any more; nothing happened)
--   | {'too_much'} (the wallet cannot hold it) | {'no_account'}
-- Cost: O(1); 6 to 29 calls
if redis.call('EXISTS', KEYS.arrival) == 1 then return {'again'} end
if ARGV.amount ~= '' then
  if redis.call('HGET', KEYS.wallet, 'wallet_number') ~= ARGV.wallet_number then return {'closed'} end
  if not has_room(@KEYS.wallet, ARGV.amount) then return {'too_much'} end
end

redis.call('SET', KEYS.arrival, now)
if ARGV.amount ~= '' then
  post(@KEYS.wallet, ARGV.amount, ARGV.transaction_text)
  redis.call('HINCRBY', KEYS.account, string.format('%s_txn_in', ARGV.mode), 1)
end
if ARGV.escrow ~= '' then redis.call('SREM', KEYS.open_escrows, ARGV.escrow) end
if ARGV.intent ~= '' then
  local state = redis.call('HGET', KEYS.intent, 'state')
  if not state or state == 'claimed' then keep_intent(@KEYS.intent, @KEYS.intent_index, ARGV.intent, 'settled', '', ARGV.heads, @ARGV.fields) end
end
recorded()
return {'done'}
