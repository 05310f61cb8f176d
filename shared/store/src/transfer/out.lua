-- Purpose: debit money for a wallet of another account, at most once: it is then in transit (decision D28).
-- KEYS: of a change, then as transfer.rs names them. `payer` is the paying leg; `record` is that of the request
-- ARGV: of a change, then as transfer.rs names them. Up to `record_life` see transfer/checks.lua; `transit` is the
--   transit id. `fields` are those of the record. Last: budgets
-- Returns: {'done', balance of the payer, at ms} | {'blocked', reason} | {'known'} (the request was made before) |
--   {'insufficient'} | {'over_budget', kind} | {'changed'} (the wallet is not the one that was read; read again) |
--   {'no_account'}; only the first two write anything
-- Cost: O(1); up to 23 calls
local balance = post(@KEYS.payer, format('-%s', ARGV.amount), ARGV.transaction_text)
call('HSET', KEYS.transit, ARGV.transit, ARGV.transit_row)
keep_record(@KEYS.record, ARGV.record, ARGV.record_life, @ARGV.fields, 'settled', '', balance)
recorded_debit(threshold_of(payer[4]), payer[2], balance, ARGV.transaction_text)
return {'done', balance, now}
