-- Purpose: move money between two wallets of one account, at most once (decision D18).
-- KEYS: 1 account record  2 audit log  3 transactions  4 to 7 leg that pays  8 record of the request
--   9 to 12 leg that receives
-- ARGV: 1 mode  2 audit entry  3 to 8 see transfer/checks.lua  9 number of the receiving wallet
--   10 words of its transaction  11 and on: fields of the record  last: budgets
-- Returns: {'done', balance of the payer, at ms} | {'blocked', reason} | {'known'} (the request was made before)
--   | {'insufficient'} | {'over_budget', kind} | {'too_much'} (the receiver cannot hold it) | {'changed'} (a wallet is not the one that was seen;
--   look again) | {'no_account'}; only the first two write anything
-- Cost: O(1); up to 29 calls
if redis.call('HGET', KEYS[9], 'wallet_number') ~= ARGV[9] then return {'changed'} end
if not has_room(9, ARGV[4]) then return {'too_much'} end

local balance = post(4, string.format('-%s', ARGV[4]), ARGV[5])
post(9, ARGV[4], ARGV[10])
keep_record(8, ARGV[7], ARGV[8], 11, 'settled', '', balance)
recorded_debit(threshold_of(payer[4]), payer[2], balance, ARGV[5])
return {'done', balance, now}
