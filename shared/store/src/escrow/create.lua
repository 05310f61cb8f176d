-- Purpose: create an escrow between two wallets (specification "Escrow"), with its place. No money moves. The list of a
--   payee in another account is updated through transit (decision D28).
-- KEYS: of a change, then as create.rs names them. `payee` is any key if the payee is in another account; `escrows` are
--   the account's; `place` is that of the number
-- ARGV: of a change, then as create.rs names them. `payee_number` is '' if the payee is in another account, `place` is
--   the value of the place, `transit` the transit id ('' = none). `fields` are the `own_count` texts of the escrow,
--   followed by those of the intent. Last: budgets
-- Returns: {'settled', creation time} | {'known'} (an intent with this id exists) | {'closed'} (a wallet is not the
--   expected one any more) | {'over_budget', kind} | {'taken'} (the number is in use; draw another) | {'no_account'};
--   only the first writes anything
-- Cost: O(log n) in the escrows of the account; up to 26 calls
if call('EXISTS', KEYS.intent) == 1 then return {'known'} end
if call('HGET', KEYS.payer, 'wallet_number') ~= ARGV.payer_number then return {'closed'} end
if ARGV.payee_number ~= '' and call('HGET', KEYS.payee, 'wallet_number') ~= ARGV.payee_number then return {'closed'} end
if is_full('escrows', counted('escrows')) then return over_budget('escrows') end
local full = full_of_intents(@KEYS.intent_index)
if full then return over_budget(full) end
if call('EXISTS', KEYS.place) == 1 then return {'taken'} end

local own = tonumber(ARGV.own_count)
call('SET', KEYS.place, ARGV.place)
call('HSET', KEYS.escrow, 'id', ARGV.number, 'status', 'pending', 'created_at', now, 'updated_at', now,
  unpack(ARGV, @ARGV.fields, @ARGV.own_count + own))
call('ZADD', KEYS.escrows, ARGV.number, ARGV.number)
call('HINCRBY', KEYS.account, format('%s_escrows', ARGV.mode), 1)
call('HINCRBY', KEYS.account, format('%s_text_bytes', ARGV.mode), #call('HGET', KEYS.escrow, 'conditions'))
if ARGV.transit ~= '' then call('HSET', KEYS.transit, ARGV.transit, ARGV.transit_row) end
keep_intent(@KEYS.intent, @KEYS.intent_index, ARGV.intent, 'settled', '', ARGV.heads, @ARGV.fields + own)
recorded('outcome=settled')
return {'settled', now}
