-- Purpose: make the deliveries of violations that were coalesced, when their minute is over, and forget them in the same step:
--   each is told once, whoever else tries.
-- KEYS: 1 account record  2 ready webhooks of the bucket  3 violations of the minute by agent  4 those that wait for its end
--   5 the order of these  6 and on, six a webhook: see made.lua
-- ARGV: 1 mode  2 version of the account's webhooks  3 number of the last entry that was dispatched  4 how many events there
--   were before  5 the minute  6 'entry' when a later entry follows, 'clock' when none does  7 most deliveries that wait for
--   one webhook  8 most finished ones  9 how many groups  10 and on: the groups; then the webhooks
-- Returns: {'done', how many deliveries were refused} | {'moved'} (the cursor is elsewhere, or something was counted
--   meanwhile) | {'early'} (the minute is not over) | {'changed'} (the webhooks are others than the caller saw); nothing
--   happened then, look again
-- Cost: O(webhooks + deliveries + groups); 4 calls, 6 a webhook, 2 to 9 a delivery, 2 a group
local function field(name) return string.format(name, ARGV[1]) end
local state = redis.call('HMGET', KEYS[1], field('%s_webhooks_version'), field('%s_dispatched'), field('%s_events'),
  field('%s_violations'), field('%s_audit_seq'))
if (state[1] or '0') ~= ARGV[2] then return {'changed'} end
if (state[2] or '0') ~= ARGV[3] or (state[3] or '0') ~= ARGV[4] or state[4] ~= ARGV[5] then return {'moved'} end
-- Without a later entry the clock decides, and only when nothing of the minute waits to be dispatched.
if ARGV[6] == 'clock' and (state[5] or '0') ~= ARGV[3] then return {'early'} end
if ARGV[6] == 'clock' and math.floor(now_ms / 60000) <= tonumber(ARGV[5]) then return {'early'} end

local groups = tonumber(ARGV[9])
for at = 10, 9 + groups do
  redis.call('HDEL', KEYS[4], ARGV[at])
  redis.call('ZREM', KEYS[5], ARGV[at])
end
if redis.call('ZCARD', KEYS[5]) == 0 then
  redis.call('HDEL', KEYS[1], field('%s_violations'))
  redis.call('UNLINK', KEYS[3])
end
local events = redis.call('HINCRBY', KEYS[1], field('%s_events'), groups)
return {'done', string.format('%d', make_deliveries(6, 10 + groups, ARGV[7], ARGV[8], events))}
