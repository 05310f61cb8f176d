-- Purpose: take money for a wallet of another account, at most once: from here on it is in transit (decision D28).
-- KEYS: 1 account record  2 audit log  3 transactions  4 to 7 leg that pays  8 record of the request  9 rows in transit
-- ARGV: 1 mode  2 audit entry  3 to 8 see transfer/checks.lua  9 id of the transit  10 its row
--   11 and on: fields of the record  last: budgets
-- Returns: {'done', balance of the payer, at ms} | {'blocked', reason} | {'known'} (the request was made before)
--   | {'insufficient'} | {'over_budget', kind} | {'changed'} (the wallet is not the one that was seen; look again) | {'no_account'}; only the
--   first two write anything
-- Cost: O(1); up to 22 calls
local balance = post(4, string.format('-%s', ARGV[4]), ARGV[5])
redis.call('HSET', KEYS[9], ARGV[9], ARGV[10])
keep_record(8, ARGV[7], ARGV[8], 11, 'settled', '', balance)
recorded_debit(threshold_of(payer[4]), payer[2], balance, ARGV[5])
return {'done', balance, now}
