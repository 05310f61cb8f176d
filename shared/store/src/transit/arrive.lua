-- Purpose: deliver a transit row from another account, once (decision D28): money in a wallet, an ended escrow, the
--   intent of a call that this account made on another account's escrow. Only the money waits for room.
-- KEYS: of a change, then as script.rs names them. `wallet` is its leg; `arrival` is the mark of the arrival, `notice`
--   that of the other parts while the money waits
-- ARGV: of a change, then as script.rs names them. `amount` is in nanos ('' = no money), `escrow` the number ('' =
--   none), `intent` '' if there is none. `fields` are those of the intent
-- Returns: {'done'} | {'again'} (it arrived before) | {'closed'} (the wallet is not the expected one any more; nothing
--   changed) | {'too_much'} (the balance would exceed its maximum; escrow and intent are written nevertheless, once) |
--   {'no_account'}
-- Cost: O(1); 7 to 31 calls
if call('EXISTS', KEYS.arrival) == 1 then return {'again'} end
local fits = true
if ARGV.amount ~= '' then
  if call('HGET', KEYS.wallet, 'wallet_number') ~= ARGV.wallet_number then return {'closed'} end
  fits = has_room(@KEYS.wallet, ARGV.amount)
end
-- The end of the escrow and the intent were written when the money was sent and found no room.
local noticed = call('EXISTS', KEYS.notice) == 1
if not fits and (noticed or ARGV.escrow == '' and ARGV.intent == '') then return {'too_much'} end

if fits then
  call('SET', KEYS.arrival, now)
  call('DEL', KEYS.notice)
else
  call('SET', KEYS.notice, now)
end
if fits and ARGV.amount ~= '' then
  post(@KEYS.wallet, ARGV.amount, ARGV.transaction_text, true)
  call('HINCRBY', KEYS.account, format('%s_txn_in', ARGV.mode), 1)
end
if not noticed and ARGV.intent ~= '' then
  local state = call('HGET', KEYS.intent, 'state')
  if not state or state == 'claimed' then keep_intent(@KEYS.intent, @KEYS.intent_index, ARGV.intent, 'settled', '', ARGV.heads, @ARGV.fields) end
end
recorded(not fits and 'credit=waiting' or nil, true)
return {fits and 'done' or 'too_much'}
