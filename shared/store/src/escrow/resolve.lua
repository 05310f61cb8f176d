-- Purpose: release an escrow, dispute it, or end its dispute. The first of these decides, and all later ones receive
--   its outcome (decisions D26, D27). Runs in the payer's account. Money for a payee in another account goes into
--   transit, and that account's intents are stored there.
-- KEYS: of a change, then as transition.rs names them. `receiver` is the leg that receives the money (any keys if no
--   wallet of this account does), `siblings` are those of the escrow. `payee_open` is the payer's if the payee is in
--   another account. `spare_intent` is for a refusal with 400. `intent`, `spare_intent` and `intent_index` are any keys
--   if no intent is stored here
-- ARGV: of a change, then as transition.rs names them. `receiver_number` is '' if no wallet of this account receives
--   the money, `transit` the transit id ('' = none), `intent` '' for a request of the operator, `requester` the
--   requesting account, `kind` that of the intent, `dispute_reason` the reason of the dispute ('' = none),
--   `transaction` the id for the intent ('' = none), `heads` '' if no intent is stored here. `fields` are those of the
--   intent. Last: budgets, which only limit refusals: the deciding request is always accepted
-- Returns: {'won'} | {'known'} (an intent with this id exists here) | {'refused', status of the escrow, reason, intent
--   id} (the operator receives only the status) | {'again', the same} (it decided before, and its intent is stored
--   elsewhere; the refusal if it was archived there) | {'closed'} (the wallet is not the expected one any more) |
--   {'too_much'} (the balance would exceed its maximum) | {'missing'} (no such escrow) | {'over_budget', kind} |
--   {'no_account'}; only the first moves money
-- Cost: O(1); 3 to 18 calls for a refusal, up to 33 otherwise
local SIBLINGS_MAX = 100
local pays, keeps_intent, by_party = ARGV.receiver_number ~= '', ARGV.heads ~= '', ARGV.intent ~= ''
local status, winner, winner_account = unpack(call('HMGET', KEYS.escrow, 'status', 'winner', 'winner_account'))
if not status then return {'missing'} end
if keeps_intent and call('EXISTS', KEYS.intent) == 1 then return {'known'} end

-- The last place is reserved for the deciding intent.
local function add_sibling(id, most)
  if call('LLEN', KEYS.siblings) < most then call('RPUSH', KEYS.siblings, format('%s %s', ARGV.requester, id)) end
end
if status ~= ARGV.required_status then
  if not by_party then return {'refused', status} end
  local spare = status == 'pending'
  local reason = spare and 'escrow_not_funded' or format('escrow_%s', status)
  local id = spare and ARGV.spare_intent or ARGV.intent
  -- The key of the deciding request is free again once its intent is archived, and its id is already among the
  -- siblings.
  if keeps_intent then
    local full = full_of_intents(@KEYS.intent_index)
    if full then return over_budget(full) end
  end
  local has_won = winner == ARGV.intent and winner_account == ARGV.requester
  if has_won and not keeps_intent then return {'again', status, reason, id} end
  if not has_won then add_sibling(id, SIBLINGS_MAX - 1) end
  if keeps_intent then
    keep_intent(spare and @KEYS.spare_intent or @KEYS.intent, @KEYS.intent_index, id, 'blocked', reason, ARGV.heads, @ARGV.fields)
    recorded(format('outcome=blocked reason=%s intentId=%s', reason, id))
  end
  return {'refused', status, reason, id}
end
if pays then
  if call('HGET', KEYS.receiver, 'wallet_number') ~= ARGV.receiver_number then return {'closed'} end
  if not has_room(@KEYS.receiver, ARGV.amount) then return {'too_much'} end
end

call('HSET', KEYS.escrow, 'status', ARGV.new_status, 'updated_at', now)
if ARGV.dispute_reason ~= '' then call('HSET', KEYS.escrow, 'dispute_reason', ARGV.dispute_reason) end
if ARGV.new_status ~= 'disputed' then
  call('HSET', KEYS.escrow, 'resolved_at', now)
  call('SREM', KEYS.payer_open, ARGV.number)
  call('SREM', KEYS.payee_open, ARGV.number)
end
if pays then post(@KEYS.receiver, ARGV.amount, ARGV.transaction_text) end
if ARGV.transit ~= '' then call('HSET', KEYS.transit, ARGV.transit, ARGV.transit_row) end
if by_party then
  call('HSET', KEYS.escrow, 'winner', ARGV.intent, 'winner_account', ARGV.requester, 'winner_kind', ARGV.kind)
  add_sibling(ARGV.intent, SIBLINGS_MAX)
end
if keeps_intent then
  keep_intent(@KEYS.intent, @KEYS.intent_index, ARGV.intent, 'settled', '', ARGV.heads, @ARGV.fields)
  if ARGV.transaction ~= '' then call('HSET', KEYS.intent, 'txn', ARGV.transaction) end
end
recorded('outcome=settled')
return {'won'}
