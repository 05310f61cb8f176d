-- Purpose: create the deliveries for coalesced violations after the end of their minute, and remove the violations in
--   the same step: each is reported once, however many dispatchers try.
-- KEYS: as dispatch.rs names them. `violations` counts those of the minute by agent, `waiting` are those that wait for
--   its end. `webhooks`: see made.lua
-- ARGV: as dispatch.rs names them. `dispatched` is the number of the last dispatched entry, `events` the previous
--   number of events. `ended_by` is 'entry' if a later entry follows, otherwise 'clock'. `groups` are followed by the
--   webhooks
-- Returns: {'done', number of refused deliveries} | {'moved'} (the cursor is elsewhere, or more was counted meanwhile)
--   | {'early'} (the minute is not over) | {'changed'} (the webhooks are not those that the caller read); nothing
--   changed in the last three cases, read again
-- Cost: O(webhooks + deliveries + groups); 4 calls, 6 per webhook, 2 to 9 per delivery, 2 per group
local function field(name) return format(name, ARGV.mode) end
local state = call('HMGET', KEYS.account, field('%s_webhooks_version'), field('%s_dispatched'), field('%s_events'),
  field('%s_violations'), field('%s_audit_seq'))
if (state[1] or '0') ~= ARGV.version then return {'changed'} end
if (state[2] or '0') ~= ARGV.dispatched or (state[3] or '0') ~= ARGV.events or state[4] ~= ARGV.minute then return {'moved'} end
-- Without a later entry the clock decides, and only if no entry of the minute waits to be dispatched.
if ARGV.ended_by == 'clock' and (state[5] or '0') ~= ARGV.dispatched then return {'early'} end
-- Any other minute of the clock: it may have been ahead, and would reach the end of this one much later.
if ARGV.ended_by == 'clock' and math.floor(now_ms / 60000) == tonumber(ARGV.minute) then return {'early'} end

local groups = tonumber(ARGV.group_count)
for at = @ARGV.groups, @ARGV.group_count + groups do
  call('HDEL', KEYS.waiting, ARGV[at])
  call('ZREM', KEYS.waiting_order, ARGV[at])
end
if call('ZCARD', KEYS.waiting_order) == 0 then
  call('HDEL', KEYS.account, field('%s_violations'))
  call('UNLINK', KEYS.violations)
end
local events = call('HINCRBY', KEYS.account, field('%s_events'), groups)
return {'done', format('%d', make_deliveries(@KEYS.webhooks, @ARGV.groups + groups, ARGV.waiting_max, ARGV.history_max, events))}
