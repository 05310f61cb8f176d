-- Purpose: store a refused intent and nothing else. The refusal was decided elsewhere, or before anything changed.
-- KEYS: of a change, then as script.rs names them. `claim` is the intent of the caller's key, whose claim is removed
-- ARGV: of a change, then as script.rs names them. `fingerprint` is that of the request, `fields` are those of the
--   intent. Last: budgets
-- Returns: {'blocked'} | {'known'} (an intent with this id exists, or another request's claim) | {'no_account'}; only
--   the first writes anything | {'over_budget', kind} (the claim is removed nevertheless)
-- Cost: O(1); up to 19 calls
local function is_free(record) return not record[1] or record[1] == 'claimed' and record[2] == ARGV.fingerprint end
if not is_free(call('HMGET', KEYS.intent, 'state', 'fp')) then return {'known'} end
local full = full_of_intents(@KEYS.intent_index)

if is_free(call('HMGET', KEYS.claim, 'state', 'fp')) then call('DEL', KEYS.claim) end
if full then return over_budget(full) end
keep_intent(@KEYS.intent, @KEYS.intent_index, ARGV.intent, 'blocked', ARGV.reason, ARGV.heads, @ARGV.fields)
recorded(format('outcome=blocked reason=%s intentId=%s', ARGV.reason, ARGV.intent))
return {'blocked'}
