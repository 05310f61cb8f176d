-- Purpose: move the payer's money into an escrow (specification "Escrow"), or keep why not. What is refused with 400 is not
--   stored under the caller's key (decision D59): it is kept as an intent of its own.
-- KEYS: 1 account record  2 audit log  3 transactions  4 payer's wallet  5 to 7 the rest of its leg  8 intent
--   9 spare intent for a refusal with 400  10 to 15 index of intents  16 escrow  17 open escrows of the payer's wallet
--   18 payee's wallet  19 open escrows of the payee's wallet (18 and 19 of a payee in another account: any keys)
-- ARGV: 1 mode  2 audit entry  3 number of the payer's wallet  4 number of the payee's ('' = in another account)
--   5 '1' when that other account's wallet is closed  6 number of the escrow  7 amount nanos  8 transaction id
--   9 words of the transaction  10 intent id  11 spare id  12 heads  13 and on: fields of the intent  last: budgets
-- Returns: {'settled', balance} | {'blocked', reason, intent id, status of the escrow}
--   | {'known'} (an intent of this id is there) | {'missing'} (no such escrow) | {'over_budget', kind}
--   | {'no_account'}; only the first two write
-- Cost: O(1); 19 calls for a refusal, up to 32 else
if redis.call('EXISTS', KEYS[8]) == 1 then return {'known'} end
local status = redis.call('HGET', KEYS[16], 'status')
if not status then return {'missing'} end
if is_full('intents', redis.call('LLEN', KEYS[10])) then return over_budget('intents') end
if is_full('transactions', caused()) then return over_budget('transactions') end
local payer = redis.call('HMGET', KEYS[4], 'wallet_number', 'frozen', 'balance', 'cap_low')
local here = ARGV[4] ~= ''

-- The reason, and whether it is answered with 400.
local function refusal()
  if status ~= 'pending' then return 'escrow_not_pending', true end
  if payer[1] ~= ARGV[3] or ARGV[5] == '1' then return 'wallet_closed', false end
  if here and redis.call('HGET', KEYS[18], 'wallet_number') ~= ARGV[4] then return 'wallet_closed', false end
  if payer[2] then return 'frozen', false end
  if tonumber(payer[3]) < tonumber(ARGV[7]) then return 'insufficient_balance', true end
end
local reason, spare = refusal()
if reason then
  local id = spare and ARGV[11] or ARGV[10]
  keep_intent(spare and 9 or 8, 10, id, 'blocked', reason, ARGV[12], 13)
  recorded(string.format('outcome=blocked reason=%s intentId=%s', reason, id))
  return {'blocked', reason, id, status}
end

local balance = post(4, string.format('-%s', ARGV[7]), ARGV[9])
redis.call('HSET', KEYS[16], 'status', 'funded', 'funded_at', now, 'updated_at', now)
redis.call('SADD', KEYS[17], ARGV[6])
if here then redis.call('SADD', KEYS[19], ARGV[6]) end
keep_intent(8, 10, ARGV[10], 'settled', '', ARGV[12], 13)
redis.call('HSET', KEYS[8], 'txn', ARGV[8], 'balance', balance)
recorded_debit(threshold_of(payer[4]), payer[3], balance, ARGV[9])
return {'settled', balance}
