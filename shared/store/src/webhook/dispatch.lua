-- Purpose: make the deliveries of the events that follow from a row of audit entries, count the violations among them, and
--   advance the account's cursor over these entries in the same step: each delivery is made once, whoever else tries.
-- KEYS: 1 account record  2 ready webhooks of the bucket  3 violations of the minute by agent  4 those that wait for its end
--   5 the order of these  6 and on, six a webhook: see made.lua
-- ARGV: 1 mode  2 version of the account's webhooks  3 number of the last entry before  4 and after  5 how many events there
--   were before  6 how many more  7 most deliveries that wait for one webhook  8 most finished ones  9 the minute of the
--   violations ('' = none was counted)  10 '1' when it began with this row  11 how many agents were counted in it
--   12 life of the counts in ms  13 how many agents changed  14 how many groups  15 and on: agent and count of each; group,
--   what waits and the number of its first entry of each; then the webhooks
-- Returns: {'done', how many deliveries were refused} | {'moved'} (the cursor is elsewhere) | {'changed'} (the webhooks are
--   others than the caller saw); nothing happened then, look again
-- Cost: O(webhooks + deliveries + agents + groups); 3 calls, 6 a webhook, 2 to 9 a delivery, 1 an agent, 2 a group
local function field(name) return string.format(name, ARGV[1]) end
local state = redis.call('HMGET', KEYS[1], field('%s_webhooks_version'), field('%s_dispatched'), field('%s_events'))
if (state[1] or '0') ~= ARGV[2] then return {'changed'} end
if (state[2] or '0') ~= ARGV[3] or (state[3] or '0') ~= ARGV[5] then return {'moved'} end

redis.call('HSET', KEYS[1], field('%s_dispatched'), ARGV[4])
local events = redis.call('HINCRBY', KEYS[1], field('%s_events'), ARGV[6])
local at = 15
if ARGV[9] ~= '' then
  if ARGV[10] == '1' then redis.call('UNLINK', KEYS[3]) end
  redis.call('HSET', KEYS[3], '/minute', ARGV[9], '/agents', ARGV[11])
  redis.call('PEXPIRE', KEYS[3], ARGV[12])
  for _ = 1, tonumber(ARGV[13]) do
    redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1])
    at = at + 2
  end
  for _ = 1, tonumber(ARGV[14]) do
    redis.call('HSET', KEYS[4], ARGV[at], ARGV[at + 1])
    redis.call('ZADD', KEYS[5], ARGV[at + 2], ARGV[at])
    at = at + 3
  end
  if ARGV[14] ~= '0' then redis.call('HSET', KEYS[1], field('%s_violations'), ARGV[9]) end
end
return {'done', string.format('%d', make_deliveries(6, at, ARGV[7], ARGV[8], events))}
