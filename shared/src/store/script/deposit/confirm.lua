-- Purpose: confirm a pending deposit: its money is the wallet's from now on (decision D17).
-- KEYS: 1 account record  2 audit log  3 transactions  4 wallet  5 to 7 the rest of its leg  8 deposit
--   9 record of the request
-- ARGV: 1 mode  2 audit entry  3 number of the wallet  4 amount nanos  5 words of the transaction
--   6 id of the record ('' = none)  7 its life ms  8 and on: its fields
-- Returns: {'confirmed'} | {'known'} (the request was made before) | {'again'} (it was confirmed before) | {'missing'}
--   | {'closed'} (the wallet is not that one any more) | {'too_much'} (the wallet cannot hold it) | {'no_account'}; only the
--   first writes anything
-- Cost: O(1); up to 22 calls
if ARGV[6] ~= '' and redis.call('EXISTS', KEYS[9]) == 1 then return {'known'} end
local state = redis.call('HGET', KEYS[8], 'state')
if not state then return {'missing'} end
if state ~= 'pending' then return {'again'} end
if redis.call('HGET', KEYS[4], 'wallet_number') ~= ARGV[3] then return {'closed'} end
if not has_room(4, ARGV[4]) then return {'too_much'} end

redis.call('HINCRBY', KEYS[4], 'pending', string.format('-%s', ARGV[4]))
local balance = post(4, ARGV[4], ARGV[5])
redis.call('HSET', KEYS[8], 'state', 'confirmed', 'confirmed_at', now, 'balance', balance)
keep_record(9, ARGV[6], ARGV[7], 8, 'settled', '', balance)
recorded(string.format('balance_nanos=%s', balance))
return {'confirmed'}
