-- Purpose: release an escrow, dispute it, or end its dispute: the first of them wins, and all others find out that it
--   has (decisions D26, D27). It runs where the payer is. What a payee in another account gets goes into transit, and
--   that account's intents are kept there.
-- KEYS: of a change, then as step.rs names them. `receiver` is the leg that gets the money (any keys when no wallet of
--   this account gets any), `siblings` are those of the escrow. `payee_open` is the payer's when the payee is in
--   another account. `spare_intent` is for a refusal with 400. `intent`, `spare_intent` and `intent_index` are any keys
--   when no intent is kept here
-- ARGV: of a change, then as step.rs names them. `receiver_number` is '' when no wallet of this account gets the money,
--   `transit` the transit id ('' = none), `intent` '' when the operator asks, `requester` the account that asks, `kind`
--   that of the intent, `dispute_reason` what is said of the dispute ('' = nothing), `transaction` the id for the
--   intent ('' = none), `heads` '' when no intent is kept here. `fields` are those of the intent. Last: budgets, which
--   bind a refusal only: whoever wins may always
-- Returns: {'won'} | {'known'} (an intent of this id is here)
--   | {'refused', status of the escrow, reason, intent id} (the operator gets the status only)
--   | {'again', the same} (it won before, and its intent belongs elsewhere; what is refused if it was archived there)
--   | {'closed'} (the wallet is not that one any more) | {'too_much'} (it cannot hold the money)
--   | {'missing'} (no such escrow) | {'over_budget', kind} | {'no_account'}; only the first moves money
-- Cost: O(1); 3 to 17 calls for a refusal, up to 32 else
local SIBLINGS_MAX = 100
local pays, here, asked = ARGV.receiver_number ~= '', ARGV.heads ~= '', ARGV.intent ~= ''
local escrow = redis.call('HMGET', KEYS.escrow, 'status', 'winner', 'winner_account')
local status = escrow[1]
if not status then return {'missing'} end
if here and redis.call('EXISTS', KEYS.intent) == 1 then return {'known'} end

-- The last place is the winner's.
local function add_sibling(id, most)
  if redis.call('LLEN', KEYS.siblings) < most then redis.call('RPUSH', KEYS.siblings, string.format('%s %s', ARGV.requester, id)) end
end
if status ~= ARGV.required_status then
  if not asked then return {'refused', status} end
  local spare = status == 'pending'
  local reason = spare and 'escrow_not_funded' or string.format('escrow_%s', status)
  local id = spare and ARGV.spare_intent or ARGV.intent
  -- The winner's key is free again once its intent is archived, and the winner is among the siblings already.
  if here and is_full('intents', redis.call('LLEN', KEYS.intent_index)) then return over_budget('intents') end
  local won = escrow[2] == ARGV.intent and escrow[3] == ARGV.requester
  if won and not here then return {'again', status, reason, id} end
  if not won then add_sibling(id, SIBLINGS_MAX - 1) end
  if here then
    keep_intent(spare and @KEYS.spare_intent or @KEYS.intent, @KEYS.intent_index, id, 'blocked', reason, ARGV.heads, @ARGV.fields)
    recorded(string.format('outcome=blocked reason=%s intentId=%s', reason, id))
  end
  return {'refused', status, reason, id}
end
if pays then
  if redis.call('HGET', KEYS.receiver, 'wallet_number') ~= ARGV.receiver_number then return {'closed'} end
  if not has_room(@KEYS.receiver, ARGV.amount) then return {'too_much'} end
end

redis.call('HSET', KEYS.escrow, 'status', ARGV.new_status, 'updated_at', now)
if ARGV.dispute_reason ~= '' then redis.call('HSET', KEYS.escrow, 'dispute_reason', ARGV.dispute_reason) end
if ARGV.new_status ~= 'disputed' then
  redis.call('HSET', KEYS.escrow, 'resolved_at', now)
  redis.call('SREM', KEYS.payer_open, ARGV.number)
  redis.call('SREM', KEYS.payee_open, ARGV.number)
end
if pays then post(@KEYS.receiver, ARGV.amount, ARGV.transaction_text) end
if ARGV.transit ~= '' then redis.call('HSET', KEYS.transit, ARGV.transit, ARGV.transit_row) end
if asked then
  redis.call('HSET', KEYS.escrow, 'winner', ARGV.intent, 'winner_account', ARGV.requester, 'winner_kind', ARGV.kind)
  add_sibling(ARGV.intent, SIBLINGS_MAX)
end
if here then
  keep_intent(@KEYS.intent, @KEYS.intent_index, ARGV.intent, 'settled', '', ARGV.heads, @ARGV.fields)
  if ARGV.transaction ~= '' then redis.call('HSET', KEYS.intent, 'txn', ARGV.transaction) end
end
recorded('outcome=settled')
return {'won'}
