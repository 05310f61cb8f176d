-- Purpose: keep an intent that is refused and nothing else: the refusal was decided elsewhere, or before anything was done.
-- KEYS: 1 account record  2 audit log  3 intent  4 to 9 index of intents
-- ARGV: 1 mode  2 audit entry  3 intent id  4 reason  5 heads  6 and on: fields of the intent
-- Returns: {'blocked'} | {'known'} (an intent of this id is there) | {'no_account'}; only the first writes anything
-- Cost: O(1); 11 calls
if redis.call('EXISTS', KEYS[3]) == 1 then return {'known'} end

keep_intent(3, 4, ARGV[3], 'blocked', ARGV[4], ARGV[5], 6)
recorded(string.format('outcome=blocked reason=%s intentId=%s', ARGV[4], ARGV[3]))
return {'blocked'}
