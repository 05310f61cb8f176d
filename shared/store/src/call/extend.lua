-- Purpose: raise the estimate of an open hold while its call is in flight, under the checks that approved it, in one
--   atomic step: agent frozen, Cap switched off, limits of the hold's own run, day and month, the plan's tracked USD. A
--   denial changes nothing and writes no audit line: the line of the call's end records it.
-- KEYS: as extend.rs names them
-- ARGV: as extend.rs names them; `tracked` is empty if the plan has no such limit, `to` is at least `from`
-- Returns: 'word generation version plan'. extend.rs lists the words; only 'extended' may have changed anything. It
--   changes nothing if the hold is already at `to`: a repetition after a lost reply
-- Cost: O(log open holds + log keys of the account); 3 calls if there is no such hold, up to 8 for a denial, up to 16
--   for an extension
local generation_text, version_text, plan_text = unpack(call('HMGET', KEYS.account, 'generation', 'version', 'plan'))
if not generation_text or not plan_text then return 'no_account 0 0 ' end
local view_text = generation_text .. ' ' .. version_text .. ' ' .. plan_text
local same_generation = generation_text == ARGV.generation
if not same_generation and generation_text + 0 < ARGV.generation + 0 then return 'lost_writes ' .. view_text end
if same_generation and version_text + 0 < ARGV.version + 0 then return 'lost_writes ' .. view_text end

local hold_text = call('GET', KEYS.hold)
if not hold_text or hold_text == 'V' then return 'missing ' .. view_text end
local pattern_text = '^H (%d+) (%d+) (%d+) ([01]) (.*)$'
local estimate_text, day_text, month_text, named_text, rest_text = string.match(hold_text, pattern_text)
if estimate_text == ARGV.to then return 'extended ' .. view_text end
if estimate_text ~= ARGV.from then return 'mismatch ' .. view_text end
if not call('ZRANK', KEYS.active_keys, ARGV.key_id) then return 'revoked ' .. view_text end
if plan_text ~= ARGV.plan then return 'other_plan ' .. view_text end

-- The day that the hold was charged to, whatever day it is now.
local day_field = 'd' .. day_text
local month_field = 'm' .. month_text
local tracked_field = 't' .. month_text
local frozen, cap, run_cap, day_cap, month_cap, day_spent, month_spent, held = unpack(call('HMGET', KEYS.agent,
  'frozen', 'cap', 'cap_run', 'cap_day', 'cap_month', day_field, month_field, 'held'))
if not cap then
  cap, run_cap, day_cap, month_cap = unpack(call('HMGET', KEYS.account, 'live_cap', 'live_run', 'live_day',
    'live_month'))
end
local run_spent, run_calls
if named_text == '1' then run_spent, run_calls = unpack(call('HMGET', KEYS.run, 'spent', 'calls')) end
-- An unnamed run consists of this one call. The same is assumed of a run whose record has expired.
run_spent = (run_spent or ARGV.from) + 0
day_spent, month_spent, held = (day_spent or '0') + 0, (month_spent or '0') + 0, (held or '0') + 0
local tracked = (call('HGET', KEYS.account, tracked_field) or '0') + 0
local by = ARGV.to - ARGV.from -- amounts are below 2^53

-- No limit of a transaction and none of agents: the agent took its slot of the month when the call was approved.
local reason_text = denial(by, frozen, cap, '', run_cap, run_spent, day_cap, day_spent, month_cap,
  month_spent, true, '', 0, ARGV.tracked, tracked)
if not reason_text and math.max(run_spent, day_spent, month_spent, tracked, held) + by > CEILING then
  reason_text = 'too_much'
end
if reason_text then return reason_text .. ' ' .. view_text end

-- The index first: it was not read before, so only it could have another type and abort the script.
call('ZADD', KEYS.due, format('%d', now_ms + ARGV.hold_life), ARGV.allow_id)
call('SET', KEYS.hold, 'H ' .. ARGV.to .. ' ' .. day_text .. ' ' .. month_text .. ' ' .. named_text .. ' ' .. rest_text)
-- Counters may exceed 2^53; only the store adds them exactly.
local by_text = format('%d', by)
call('HINCRBY', KEYS.agent, day_field, by_text)
call('HINCRBY', KEYS.agent, month_field, by_text)
call('HINCRBY', KEYS.agent, 'held', by_text)
call('HINCRBY', KEYS.account, tracked_field, by_text)
if run_calls then call('HINCRBY', KEYS.run, 'spent', by_text) end
local new_version_text = format('%d', call('HINCRBY', KEYS.account, 'version', '1'))
return 'extended ' .. generation_text .. ' ' .. new_version_text .. ' ' .. plan_text
