-- Fragment: what every transfer is checked for (decisions D18, D67). Needs change.lua, budget.lua, money.lua,
--   once.lua, refusals.lua and low_balance.lua.
-- Takes KEYS[4] to KEYS[7] the leg that pays, KEYS[8] the record of the request; ARGV[3] number of the paying wallet,
-- ARGV[4] amount nanos, ARGV[5] words of its transaction, ARGV[6] 'wallet_closed' when one of the two is closed for ever
-- ('' = not seen so), ARGV[7] id of the record ('' = none), ARGV[8] its life ms, ARGV[11] and on its fields.
if ARGV[7] ~= '' and redis.call('EXISTS', KEYS[8]) == 1 then return {'known'} end
local payer = redis.call('HMGET', KEYS[4], 'wallet_number', 'balance', 'frozen', 'cap_low')
local reason = ARGV[6]
if reason == '' then
  if payer[1] ~= ARGV[3] then return {'changed'} end
  if payer[3] then reason = 'frozen' end
end
if reason ~= '' then
  if is_refusal_over(ARGV[7], ARGV[8]) then return over_budget('refusals') end
  keep_record(8, ARGV[7], ARGV[8], 11, 'blocked', reason, '')
  count_refusal(ARGV[7], ARGV[8])
  recorded(string.format('outcome=blocked reason=%s', reason))
  return {'blocked', reason}
end
if tonumber(payer[2]) < tonumber(ARGV[4]) then return {'insufficient'} end
if is_full('transactions', caused()) then return over_budget('transactions') end

