-- Purpose: move the payer's money into an escrow (specification "Escrow"), or store the refusal. A refusal with 400 is
--   not stored under the caller's key (decision D59), but as a separate intent.
-- KEYS: of a change, then as fund.rs names them. `payer` is the payer's leg; `payee` and `payee_open` are any keys if
--   the payee is in another account; `spare_intent` is for a refusal with 400
-- ARGV: of a change, then as fund.rs names them. `payee_number` is '' if the payee is in another account, and
--   `payee_closed` '1' if the wallet there is closed. `fields` are those of the intent. Last: budgets
-- Returns: {'settled', balance} | {'blocked', reason, intent id, status of the escrow}
--   | {'known'} (an intent with this id exists) | {'missing'} (no such escrow) | {'over_budget', kind} |
--   {'no_account'}; only the first two write
-- Cost: O(1); 20 calls for a refusal, up to 34 otherwise
if call('EXISTS', KEYS.intent) == 1 then return {'known'} end
local status = call('HGET', KEYS.escrow, 'status')
if not status then return {'missing'} end
local full = full_of_intents(@KEYS.intent_index)
if full then return over_budget(full) end
if is_full('transactions', caused()) then return over_budget('transactions') end
local payer = call('HMGET', KEYS.payer, 'wallet_number', 'frozen', 'balance', 'cap_low')
local payee_is_here = ARGV.payee_number ~= ''

-- Returns the reason, and whether it is answered with 400.
local function refusal()
  if status ~= 'pending' then return 'escrow_not_pending', true end
  if payer[1] ~= ARGV.payer_number or ARGV.payee_closed == '1' then return 'wallet_closed', false end
  if payee_is_here and call('HGET', KEYS.payee, 'wallet_number') ~= ARGV.payee_number then
    return 'wallet_closed', false
  end
  if payer[2] then return 'frozen', false end
  if tonumber(payer[3]) < tonumber(ARGV.amount) then return 'insufficient_balance', true end
end
local reason, spare = refusal()
if reason then
  local id = spare and ARGV.spare_intent or ARGV.intent
  keep_intent(spare and @KEYS.spare_intent or @KEYS.intent, @KEYS.intent_index, id, 'blocked', reason, ARGV.heads, @ARGV.fields)
  recorded(format('outcome=blocked reason=%s intentId=%s', reason, id))
  return {'blocked', reason, id, status}
end

local balance = post(@KEYS.payer, format('-%s', ARGV.amount), ARGV.transaction_text)
call('HSET', KEYS.escrow, 'status', 'funded', 'funded_at', now, 'updated_at', now)
call('SADD', KEYS.payer_open, ARGV.number)
if payee_is_here then call('SADD', KEYS.payee_open, ARGV.number) end
keep_intent(@KEYS.intent, @KEYS.intent_index, ARGV.intent, 'settled', '', ARGV.heads, @ARGV.fields)
call('HSET', KEYS.intent, 'txn', ARGV.transaction, 'balance', balance)
recorded_debit(threshold_of(payer[4]), payer[3], balance, ARGV.transaction_text)
return {'settled', balance}
