-- Purpose: deny a spend that waits for approval (decision D23): nothing moves, and the intent is blocked for good.
-- KEYS: 1 account record  2 audit log  3 intent  4 to 9 index of intents
-- ARGV: 1 mode  2 audit entry  3 intent id  4 head of the intent as the caller saw it  5 heads  6 and on: fields of the
--   decision and their values
-- Returns: {'denied'} | {'changed'} (the intent no longer waits as the caller saw it; nothing happened) | {'no_account'}
-- Cost: O(log waiting intents); 10 calls
local REASON = 'approval_denied'
local intent = redis.call('HMGET', KEYS[3], 'state', 'head')
if intent[1] ~= 'pending_approval' or intent[2] ~= ARGV[4] then return {'changed'} end

redis.call('HSET', KEYS[3], 'state', 'blocked', 'reason', REASON, 'head', head_for(ARGV[5], REASON), 'filed', next_place(),
  unpack(ARGV, 6))
redis.call('ZREM', KEYS[9], ARGV[3])
file_under(4, ARGV[3], 'blocked')
recorded()
return {'denied'}
