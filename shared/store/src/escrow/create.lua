-- Purpose: make an escrow between two wallets (specification "Escrow"), with its place. No money moves. The list of a payee in
--   another account learns of it as what is in transit does (decision D28).
-- KEYS: 1 account record  2 audit log  3 payer's wallet  4 payee's wallet (of another account: any key)  5 intent
--   6 to 11 index of intents  12 escrow  13 the account's escrows  14 place of the number  15 transit
-- ARGV: 1 mode  2 audit entry  3 number of the payer's wallet  4 number of the payee's ('' = in another account)
--   5 number of the escrow  6 intent id  7 heads  8 what the place says  9 transit id ('' = none)  10 transit row
--   11 how many of the following belong to the escrow  12 and on: fields of the escrow with their values, then those of the
--   intent  last: budgets
-- Returns: {'settled', made at} | {'known'} (an intent of this id is there) | {'closed'} (a wallet is not that one any more)
--   | {'over_budget', kind} | {'taken'} (the number has a place; draw another) | {'no_account'}; only the first writes anything
-- Cost: O(log n) in the escrows of the account; up to 26 calls
if redis.call('EXISTS', KEYS[5]) == 1 then return {'known'} end
if redis.call('HGET', KEYS[3], 'wallet_number') ~= ARGV[3] then return {'closed'} end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[4], 'wallet_number') ~= ARGV[4] then return {'closed'} end
if is_full('escrows', counted('escrows')) then return over_budget('escrows') end
if is_full('intents', redis.call('LLEN', KEYS[6])) then return over_budget('intents') end
if is_full('text_bytes', counted('text_bytes')) then return over_budget('text_bytes') end
if redis.call('EXISTS', KEYS[14]) == 1 then return {'taken'} end

local own = tonumber(ARGV[11])
redis.call('SET', KEYS[14], ARGV[8])
redis.call('HSET', KEYS[12], 'id', ARGV[5], 'status', 'pending', 'created_at', now, 'updated_at', now,
  unpack(ARGV, 12, 11 + own))
redis.call('ZADD', KEYS[13], ARGV[5], ARGV[5])
redis.call('HINCRBY', KEYS[1], string.format('%s_escrows', ARGV[1]), 1)
redis.call('HINCRBY', KEYS[1], string.format('%s_text_bytes', ARGV[1]), #redis.call('HGET', KEYS[12], 'conditions'))
if ARGV[9] ~= '' then redis.call('HSET', KEYS[15], ARGV[9], ARGV[10]) end
keep_intent(5, 6, ARGV[6], 'settled', '', ARGV[7], 12 + own)
recorded('outcome=settled')
return {'settled', now}
