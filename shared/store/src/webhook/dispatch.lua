-- Purpose: create the deliveries for the events of a range of audit entries, count the violations among them, and
--   advance the account's cursor past these entries in the same step: each delivery is created once, however many
--   dispatchers try.
-- KEYS: as dispatch.rs names them. `violations` counts those of the minute by agent, `waiting` are those that wait for
--   its end. `webhooks`: see made.lua
-- ARGV: as dispatch.rs names them. `dispatched` and `last` are the numbers of the last entry before and after, `events`
--   is the previous number of events and `new_events` that of these entries. `minute` is that of the violations ('' =
--   none was counted), `minute_begun` is '1' if it began with these entries, `minute_agents` is the number of agents
--   counted in it, `counts_life` is in ms. `changes`: agent and count of each changed agent; group, waiting violations
--   and number of its first entry of each changed group; then the webhooks
-- Returns: {'done', number of refused deliveries} | {'moved'} (the cursor is elsewhere) | {'changed'} (the webhooks are
--   not those that the caller read); nothing changed in the last two cases, read again
-- Cost: O(webhooks + deliveries + agents + groups); 3 calls, 6 per webhook, 2 to 9 per delivery, 1 per agent, 2 per
--   group
local function field(name) return format(name, ARGV.mode) end
local state = call('HMGET', KEYS.account, field('%s_webhooks_version'), field('%s_dispatched'), field('%s_events'))
if (state[1] or '0') ~= ARGV.version then return {'changed'} end
if (state[2] or '0') ~= ARGV.dispatched or (state[3] or '0') ~= ARGV.events then return {'moved'} end

call('HSET', KEYS.account, field('%s_dispatched'), ARGV.last)
local events = call('HINCRBY', KEYS.account, field('%s_events'), ARGV.new_events)
local at = @ARGV.changes
if ARGV.minute ~= '' then
  if ARGV.minute_begun == '1' then call('UNLINK', KEYS.violations) end
  call('HSET', KEYS.violations, '/minute', ARGV.minute, '/agents', ARGV.minute_agents)
  call('PEXPIRE', KEYS.violations, ARGV.counts_life)
  for _ = 1, tonumber(ARGV.changed_agents) do
    call('HSET', KEYS.violations, ARGV[at], ARGV[at + 1])
    at = at + 2
  end
  for _ = 1, tonumber(ARGV.changed_groups) do
    call('HSET', KEYS.waiting, ARGV[at], ARGV[at + 1])
    call('ZADD', KEYS.waiting_order, ARGV[at + 2], ARGV[at])
    at = at + 3
  end
  if ARGV.changed_groups ~= '0' then call('HSET', KEYS.account, field('%s_violations'), ARGV.minute) end
end
return {'done', format('%d', make_deliveries(@KEYS.webhooks, at, ARGV.waiting_max, ARGV.history_max, events))}
