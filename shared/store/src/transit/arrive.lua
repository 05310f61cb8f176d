-- Purpose: let what left another account arrive in this one, once (decision D28): money in a wallet, an escrow that is over,
--   the intent of a call that this account made on another account's escrow.
-- KEYS: 1 account record  2 audit log  3 transactions  4 wallet  5 to 7 the rest of its leg  8 mark of the arrival
--   9 open escrows of the wallet that it was sent to  10 intent  11 to 16 index of intents
-- ARGV: 1 mode  2 audit entry  3 number of the wallet  4 amount nanos ('' = no money)  5 words of the transaction
--   6 number of the escrow ('' = none)  7 intent id ('' = none)  8 heads  9 and on: fields of the intent
-- Returns: {'done'} | {'again'} (it arrived before) | {'closed'} (the wallet is not that one any more; nothing happened)
--   | {'too_much'} (the wallet cannot hold it) | {'no_account'}
-- Cost: O(1); 6 to 29 calls
if redis.call('EXISTS', KEYS[8]) == 1 then return {'again'} end
if ARGV[4] ~= '' then
  if redis.call('HGET', KEYS[4], 'wallet_number') ~= ARGV[3] then return {'closed'} end
  if not has_room(4, ARGV[4]) then return {'too_much'} end
end

redis.call('SET', KEYS[8], now)
if ARGV[4] ~= '' then
  post(4, ARGV[4], ARGV[5])
  redis.call('HINCRBY', KEYS[1], string.format('%s_txn_in', ARGV[1]), 1)
end
if ARGV[6] ~= '' then redis.call('SREM', KEYS[9], ARGV[6]) end
if ARGV[7] ~= '' then
  local state = redis.call('HGET', KEYS[10], 'state')
  if not state or state == 'claimed' then keep_intent(10, 11, ARGV[7], 'settled', '', ARGV[8], 9) end
end
recorded()
return {'done'}
