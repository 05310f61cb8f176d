-- Purpose: release an escrow, dispute it, or end its dispute: the first of them wins, and all others find out that it has
--   (decisions D26, D27). It runs where the payer is. What a payee in another account gets goes into transit, and that
--   account's intents are kept there.
-- KEYS: 1 account record  2 audit log  3 transactions  4 wallet that gets the money  5 to 7 the rest of its leg (4 to 7: any
--   keys when no wallet of this account gets any)  8 escrow  9 its siblings  10 open escrows of the payer's wallet
--   11 open escrows of the payee's wallet (in another account: those of the payer's)  12 transit  13 intent
--   14 spare intent for a refusal with 400  15 to 20 index of intents (13 to 20: any keys when no intent is kept here)
-- ARGV: 1 mode  2 audit entry  3 status that the escrow must have  4 status that it gets  5 number of the wallet in 4
--   ('' = none)  6 amount nanos  7 words of the transaction  8 transit id ('' = none)  9 transit row  10 number of the escrow
--   11 intent id ('' = the operator asks)  12 spare id  13 account that asks  14 kind of the intent
--   15 what is said of the dispute ('' = nothing)  16 transaction id for the intent ('' = none)
--   17 heads ('' = no intent is kept here)  18 and on: fields of the intent
--   last: budgets, which bind a refusal only: whoever wins may always
-- Returns: {'won'} | {'known'} (an intent of this id is here)
--   | {'refused', status of the escrow, reason, intent id} (the operator gets the status only)
--   | {'again', the same} (it won before, and its intent belongs elsewhere; what is refused if it was archived there)
--   | {'closed'} (the wallet is not that one any more) | {'too_much'} (it cannot hold the money)
--   | {'missing'} (no such escrow) | {'over_budget', kind} | {'no_account'}; only the first moves money
-- Cost: O(1); 3 to 17 calls for a refusal, up to 32 else
local SIBLINGS_MAX = 100
local pays, here, asked = ARGV[5] ~= '', ARGV[17] ~= '', ARGV[11] ~= ''
local escrow = redis.call('HMGET', KEYS[8], 'status', 'winner', 'winner_account')
local status = escrow[1]
if not status then return {'missing'} end
if here and redis.call('EXISTS', KEYS[13]) == 1 then return {'known'} end

-- The last place is the winner's.
local function add_sibling(id, most)
  if redis.call('LLEN', KEYS[9]) < most then redis.call('RPUSH', KEYS[9], string.format('%s %s', ARGV[13], id)) end
end
if status ~= ARGV[3] then
  if not asked then return {'refused', status} end
  local spare = status == 'pending'
  local reason = spare and 'escrow_not_funded' or string.format('escrow_%s', status)
  local id = spare and ARGV[12] or ARGV[11]
  -- The winner's key is free again once its intent is archived, and the winner is among the siblings already.
  if here and is_full('intents', redis.call('LLEN', KEYS[15])) then return over_budget('intents') end
  local won = escrow[2] == ARGV[11] and escrow[3] == ARGV[13]
  if won and not here then return {'again', status, reason, id} end
  if not won then add_sibling(id, SIBLINGS_MAX - 1) end
  if here then
    keep_intent(spare and 14 or 13, 15, id, 'blocked', reason, ARGV[17], 18)
    recorded(string.format('outcome=blocked reason=%s intentId=%s', reason, id))
  end
  return {'refused', status, reason, id}
end
if pays then
  if redis.call('HGET', KEYS[4], 'wallet_number') ~= ARGV[5] then return {'closed'} end
  if not has_room(4, ARGV[6]) then return {'too_much'} end
end

redis.call('HSET', KEYS[8], 'status', ARGV[4], 'updated_at', now)
if ARGV[15] ~= '' then redis.call('HSET', KEYS[8], 'dispute_reason', ARGV[15]) end
if ARGV[4] ~= 'disputed' then
  redis.call('HSET', KEYS[8], 'resolved_at', now)
  redis.call('SREM', KEYS[10], ARGV[10])
  redis.call('SREM', KEYS[11], ARGV[10])
end
if pays then post(4, ARGV[6], ARGV[7]) end
if ARGV[8] ~= '' then redis.call('HSET', KEYS[12], ARGV[8], ARGV[9]) end
if asked then
  redis.call('HSET', KEYS[8], 'winner', ARGV[11], 'winner_account', ARGV[13], 'winner_kind', ARGV[14])
  add_sibling(ARGV[11], SIBLINGS_MAX)
end
if here then
  keep_intent(13, 15, ARGV[11], 'settled', '', ARGV[17], 18)
  if ARGV[16] ~= '' then redis.call('HSET', KEYS[13], 'txn', ARGV[16]) end
end
recorded('outcome=settled')
return {'won'}
