-- Purpose: take in a deposit, confirmed or still pending, once for each rail reference (decision D17).
-- KEYS: 1 account record  2 audit log  3 transactions  4 wallet  5 to 7 the rest of its leg  8 deposit
--   9 record of the request
-- ARGV: 1 mode  2 audit entry  3 number of the wallet  4 amount nanos  5 words of the transaction
--   6 'confirmed' | 'pending'  7 id of the record ('' = none)  8 its life ms  9 'wallet_closed' when it was seen closed, or ''
--   10 transaction id  11 reference  12 owner of the wallet  13 currency  14 and on: fields of the record  last: budgets
-- Returns: {'made'} | {'blocked', reason} | {'known'} (the request was made before) | {'there'} (the reference was used; a
--   repetition of the same deposit gets its record, so that its key serves no other request) | {'too_much'} (the wallet cannot
--   hold it) | {'changed'} (the wallet is not the one that was seen; look again) | {'over_budget', kind} | {'no_account'}; only
--   the first two and a repetition write anything
-- Cost: O(1); up to 25 calls
if ARGV[7] ~= '' and redis.call('EXISTS', KEYS[9]) == 1 then return {'known'} end
local there = redis.call('HMGET', KEYS[8], 'number', 'amount', 'currency', 'first_balance', 'id')
if there[1] then
  if ARGV[7] ~= '' and there[1] == ARGV[3] and there[2] == ARGV[4] and there[3] == ARGV[13] then
    if is_refusal_over(ARGV[7], ARGV[8]) then return over_budget('refusals') end
    count_refusal(ARGV[7], ARGV[8])
    keep_record(9, ARGV[7], ARGV[8], 14, 'settled', '', there[4])
    redis.call('HSET', KEYS[9], 'txn', there[5])
  end
  return {'there'}
end
if ARGV[9] ~= '' then
  if is_refusal_over(ARGV[7], ARGV[8]) then return over_budget('refusals') end
  keep_record(9, ARGV[7], ARGV[8], 14, 'blocked', ARGV[9], '')
  count_refusal(ARGV[7], ARGV[8])
  recorded(string.format('outcome=blocked reason=%s', ARGV[9]))
  return {'blocked', ARGV[9]}
end
local wallet = redis.call('HMGET', KEYS[4], 'wallet_number', 'balance', 'pending')
if wallet[1] ~= ARGV[3] then return {'changed'} end
if tonumber(wallet[2]) + tonumber(wallet[3] or '0') + tonumber(ARGV[4]) > CEILING then return {'too_much'} end
if is_full('deposits', counted('deposits')) then return over_budget('deposits') end
if ARGV[6] == 'confirmed' and is_full('transactions', caused()) then return over_budget('transactions') end

local balance = wallet[2]
if ARGV[6] == 'pending' then
  redis.call('HINCRBY', KEYS[4], 'pending', ARGV[4])
  redis.call('HSET', KEYS[4], 'updated_at', now)
else
  balance = post(4, ARGV[4], ARGV[5])
  redis.call('HSET', KEYS[8], 'confirmed_at', now, 'balance', balance)
end
redis.call('HSET', KEYS[8], 'id', ARGV[10], 'reference', ARGV[11], 'owner', ARGV[12], 'number', ARGV[3], 'amount', ARGV[4],
  'currency', ARGV[13], 'state', ARGV[6], 'first', ARGV[6], 'at', now, 'first_balance', balance)
redis.call('HINCRBY', KEYS[1], string.format('%s_deposits', ARGV[1]), 1)
keep_record(9, ARGV[7], ARGV[8], 14, 'settled', '', balance)
recorded(ARGV[6] == 'pending' and 'outcome=settled' or string.format('outcome=settled balance_nanos=%s', balance))
return {'made'}
