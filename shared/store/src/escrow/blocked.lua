-- Purpose: keep an intent that is refused and nothing else: the refusal was decided elsewhere, or before anything was done.
-- KEYS: 1 account record  2 audit log  3 intent  4 to 9 index of intents  10 intent of the caller's key, whose claim ends
-- ARGV: 1 mode  2 audit entry  3 intent id  4 reason  5 heads  6 fingerprint of the request  7 and on: fields of the intent
--   last: budgets
-- Returns: {'blocked'} | {'known'} (an intent of this id is there, or another request's claim) | {'no_account'}; only the
--   first writes anything | {'over_budget', kind} (the claim ends all the same)
-- Cost: O(1); up to 18 calls
local function is_free(record) return not record[1] or record[1] == 'claimed' and record[2] == ARGV[6] end
if not is_free(redis.call('HMGET', KEYS[3], 'state', 'fp')) then return {'known'} end
local full = is_full('intents', redis.call('LLEN', KEYS[4]))

if is_free(redis.call('HMGET', KEYS[10], 'state', 'fp')) then redis.call('DEL', KEYS[10]) end
if full then return over_budget('intents') end
keep_intent(3, 4, ARGV[3], 'blocked', ARGV[4], ARGV[5], 7)
recorded(string.format('outcome=blocked reason=%s intentId=%s', ARGV[4], ARGV[3]))
return {'blocked'}
