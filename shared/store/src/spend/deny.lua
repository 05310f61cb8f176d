-- Purpose: deny a spend that waits for approval (decision D23): nothing moves, and the intent is permanently blocked.
-- KEYS: of a change, then as deny.rs names them. `intent_index` and `pending_intents` are the six keys of the index of
--   intents
-- ARGV: of a change, then as deny.rs names them. `head` is that of the intent as the caller read it, `fields` are those
--   of the decision
-- Returns: {'denied'} | {'changed'} (the intent does not wait as the caller read it; nothing changed) | {'no_account'}
-- Cost: O(log waiting intents); 10 calls
local REASON = 'approval_denied'
local intent = call('HMGET', KEYS.intent, 'state', 'head')
if intent[1] ~= 'pending_approval' or intent[2] ~= ARGV.head then return {'changed'} end

call('HSET', KEYS.intent, 'state', 'blocked', 'reason', REASON, 'head', head_for(ARGV.heads, REASON), 'filed', next_seq(),
  unpack(ARGV, @ARGV.fields))
call('ZREM', KEYS.pending_intents, ARGV.intent)
file_under(@KEYS.intent_index, ARGV.intent, 'blocked')
recorded()
return {'denied'}
