-- Purpose: confirm a pending deposit and credit its money to the wallet (decision D17).
-- KEYS: of a change, then as script.rs names them. `wallet` is its leg; `record` is that of the request
-- ARGV: of a change, then as confirm.rs names them. `amount` is in nanos, `record` the id of the record ('' = none),
--   `record_life` in ms. `fields` are those of the record. Last: budgets
-- Returns: {'confirmed'} | {'known'} (the request was made before) | {'again'} (it was confirmed before) |
--   {'missing'} | {'cancelled'} (it was taken back) | {'closed'} (the wallet is not that one any more) | {'too_much'}
--   (the wallet cannot hold it) | {'over_budget', kind} | {'no_account'}; only the first changes money, and those that
--   no repetition can change ('again', 'cancelled', 'closed') keep their record, so that its key serves no other
--   request
-- Cost: O(1); up to 25 calls
if ARGV.record ~= '' and call('EXISTS', KEYS.record) == 1 then return {'known'} end
local deposit = call('HMGET', KEYS.deposit, 'state', 'balance')
if not deposit[1] then return {'missing'} end
local final, state, reason = nil, 'blocked', ''
if deposit[1] == 'cancelled' then
  final = 'cancelled'
elseif deposit[1] ~= 'pending' then
  final, state = 'again', 'settled'
elseif call('HGET', KEYS.wallet, 'wallet_number') ~= ARGV.wallet_number then
  final, reason = 'closed', 'wallet_closed'
end
if final then
  if is_refusal_over(ARGV.record, ARGV.record_life) then return over_budget('refusals') end
  count_refusal(ARGV.record, ARGV.record_life)
  keep_record(@KEYS.record, ARGV.record, ARGV.record_life, @ARGV.fields, state, reason, deposit[2] or '')
  return {final}
end
if not has_room(@KEYS.wallet, ARGV.amount) then return {'too_much'} end

call('HINCRBY', KEYS.wallet, 'pending', format('-%s', ARGV.amount))
local balance = post(@KEYS.wallet, ARGV.amount, ARGV.transaction_text)
call('HSET', KEYS.deposit, 'state', 'confirmed', 'confirmed_at', now, 'balance', balance)
keep_record(@KEYS.record, ARGV.record, ARGV.record_life, @ARGV.fields, 'settled', '', balance)
recorded(format('balance_nanos=%s', balance))
return {'confirmed'}
