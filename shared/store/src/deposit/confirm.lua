-- Purpose: confirm a pending deposit: its money is the wallet's from now on (decision D17).
-- KEYS: 1 account record  2 audit log  3 transactions  4 wallet  5 to 7 the rest of its leg  8 deposit
--   9 record of the request
-- ARGV: 1 mode  2 audit entry  3 number of the wallet  4 amount nanos  5 words of the transaction
--   6 id of the record ('' = none)  7 its life ms  8 and on: its fields  last: budgets
-- Returns: {'confirmed'} | {'known'} (the request was made before) | {'again'} (it was confirmed before; the repetition gets
--   its record, so that its key serves no other request) | {'missing'} | {'closed'} (the wallet is not that one any more)
--   | {'too_much'} (the wallet cannot hold it) | {'over_budget', kind} | {'no_account'}; only the first and a repetition write
--   anything
-- Cost: O(1); up to 24 calls
if ARGV[6] ~= '' and redis.call('EXISTS', KEYS[9]) == 1 then return {'known'} end
local deposit = redis.call('HMGET', KEYS[8], 'state', 'balance')
if not deposit[1] then return {'missing'} end
if deposit[1] ~= 'pending' then
  if is_refusal_over(ARGV[6], ARGV[7]) then return over_budget('refusals') end
  count_refusal(ARGV[6], ARGV[7])
  keep_record(9, ARGV[6], ARGV[7], 8, 'settled', '', deposit[2])
  return {'again'}
end
if redis.call('HGET', KEYS[4], 'wallet_number') ~= ARGV[3] then return {'closed'} end
if not has_room(4, ARGV[4]) then return {'too_much'} end

redis.call('HINCRBY', KEYS[4], 'pending', string.format('-%s', ARGV[4]))
local balance = post(4, ARGV[4], ARGV[5])
redis.call('HSET', KEYS[8], 'state', 'confirmed', 'confirmed_at', now, 'balance', balance)
keep_record(9, ARGV[6], ARGV[7], 8, 'settled', '', balance)
recorded(string.format('balance_nanos=%s', balance))
return {'confirmed'}
