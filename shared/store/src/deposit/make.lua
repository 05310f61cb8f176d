-- Purpose: create a deposit, confirmed or pending, once for each rail reference (decision D17).
-- KEYS: of a change, then as script.rs names them. `wallet` is its leg; `record` is that of the request
-- ARGV: of a change, then as script.rs names them. `amount` is in nanos, `state` 'confirmed' | 'pending', `record` the
--   id of the record ('' = none), `record_life` in ms, `refusal` 'wallet_closed' if the wallet was read as closed, or
--   ''. `fields` are those of the record. Last: budgets
-- Returns: {'made'} | {'blocked', reason} | {'known'} (the request was made before) | {'there'} (the reference was
--   used; a repetition of the same deposit gets its own record, so that its key serves no other request) | {'too_much'}
--   (the balance would exceed its maximum) | {'changed'} (the wallet is not the one that was read; read again) |
--   {'over_budget', kind} | {'no_account'}; only the first two and a repetition write anything
-- Cost: O(1); up to 26 calls
if ARGV.record ~= '' and call('EXISTS', KEYS.record) == 1 then return {'known'} end
local there = call('HMGET', KEYS.deposit, 'number', 'amount', 'currency', 'first_balance', 'id', 'first', 'state')
if there[1] then
  -- A cancelled deposit never arrives, so no request gets an answer that promises it.
  if there[7] == 'cancelled' then return {'there'} end
  if ARGV.record ~= '' and there[1] == ARGV.wallet_number and there[2] == ARGV.amount and there[3] == ARGV.currency and there[6] == ARGV.state then
    if is_refusal_over(ARGV.record, ARGV.record_life) then return over_budget('refusals') end
    count_refusal(ARGV.record, ARGV.record_life)
    keep_record(@KEYS.record, ARGV.record, ARGV.record_life, @ARGV.fields, 'settled', '', there[4])
    call('HSET', KEYS.record, 'txn', there[5])
  end
  return {'there'}
end
if ARGV.refusal ~= '' then
  if is_refusal_over(ARGV.record, ARGV.record_life) then return over_budget('refusals') end
  keep_record(@KEYS.record, ARGV.record, ARGV.record_life, @ARGV.fields, 'blocked', ARGV.refusal, '')
  count_refusal(ARGV.record, ARGV.record_life)
  recorded(format('outcome=blocked reason=%s', ARGV.refusal))
  return {'blocked', ARGV.refusal}
end
local wallet = call('HMGET', KEYS.wallet, 'wallet_number', 'balance', 'pending')
if wallet[1] ~= ARGV.wallet_number then return {'changed'} end
if not can_hold(wallet[2], wallet[3] or '0', ARGV.amount) then return {'too_much'} end
if is_full('deposits', counted('deposits')) then return over_budget('deposits') end
if ARGV.state == 'confirmed' and is_full('transactions', caused()) then return over_budget('transactions') end

local balance = wallet[2]
if ARGV.state == 'pending' then
  call('HINCRBY', KEYS.wallet, 'pending', ARGV.amount)
  call('HSET', KEYS.wallet, 'updated_at', now)
else
  balance = post(@KEYS.wallet, ARGV.amount, ARGV.transaction_text)
  call('HSET', KEYS.deposit, 'confirmed_at', now, 'balance', balance)
end
call('HSET', KEYS.deposit, 'id', ARGV.transaction, 'reference', ARGV.reference, 'owner', ARGV.owner, 'number', ARGV.wallet_number, 'amount', ARGV.amount,
  'currency', ARGV.currency, 'state', ARGV.state, 'first', ARGV.state, 'at', now, 'first_balance', balance)
call('HINCRBY', KEYS.account, format('%s_deposits', ARGV.mode), 1)
keep_record(@KEYS.record, ARGV.record, ARGV.record_life, @ARGV.fields, 'settled', '', balance)
recorded(ARGV.state == 'pending' and 'outcome=settled' or format('outcome=settled balance_nanos=%s', balance))
return {'made'}
