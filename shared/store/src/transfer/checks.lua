-- Fragment: the checks of every transfer (decisions D18, D67). Needs change.lua, budget.lua, money.lua,
-- idempotency.lua, refusals.lua and low_balance.lua.
-- `payer` is the paying leg, `record` that of the request, and `transaction_text` the words of the payer's transaction.
-- `amount` is in nanos, `refusal` 'wallet_closed' if one of the two wallets was read as closed (otherwise ''), `record`
-- the id of the record ('' = none), `record_life` in ms, and `fields` are those of the record.
if ARGV.record ~= '' and call('EXISTS', KEYS.record) == 1 then return {'known'} end
local payer = call('HMGET', KEYS.payer, 'wallet_number', 'balance', 'frozen', 'cap_low')
local reason = ARGV.refusal
if reason == '' then
  if payer[1] ~= ARGV.payer_number then return {'changed'} end
  if payer[3] then reason = 'frozen' end
end
if reason ~= '' then
  if is_refusal_over(ARGV.record, ARGV.record_life) then return over_budget('refusals') end
  keep_record(@KEYS.record, ARGV.record, ARGV.record_life, @ARGV.fields, 'blocked', reason, '')
  count_refusal(ARGV.record, ARGV.record_life)
  recorded(format('outcome=blocked reason=%s', reason))
  return {'blocked', reason}
end
if tonumber(payer[2]) < tonumber(ARGV.amount) then return {'insufficient'} end
if is_full('transactions', caused()) then return over_budget('transactions') end

