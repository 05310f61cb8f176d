-- Purpose: move money between two wallets of one account, at most once (decision D18).
-- KEYS: of a change, then as transfer.rs names them. `payer` and `receiver` are legs; `record` is that of the request
-- ARGV: of a change, then as transfer.rs names them. Up to `record_life` see transfer/checks.lua. `fields` are those of
--   the record. Last: budgets
-- Returns: {'done', balance of the payer, at ms} | {'blocked', reason} | {'known'} (the request was made before) |
--   {'insufficient'} | {'over_budget', kind} | {'too_much'} (the receiver's balance would exceed its maximum) |
--   {'changed'} (a wallet is not the one that was read; read again) | {'no_account'}; only the first two write anything
-- Cost: O(1); up to 31 calls
if call('HGET', KEYS.receiver, 'wallet_number') ~= ARGV.receiver_number then return {'changed'} end
if not has_room(@KEYS.receiver, ARGV.amount) then return {'too_much'} end

local balance = post(@KEYS.payer, format('-%s', ARGV.amount), ARGV.transaction_text)
post(@KEYS.receiver, ARGV.amount, ARGV.receiver_text)
keep_record(@KEYS.record, ARGV.record, ARGV.record_life, @ARGV.fields, 'settled', '', balance)
recorded_debit(threshold_of(payer[4]), payer[2], balance, ARGV.transaction_text)
return {'done', balance, now}
