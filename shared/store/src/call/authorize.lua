-- Purpose: decide on one proxied call and, if every check passes, charge its estimate and open a hold: specification
--   §4.4 steps 1, 2, 3 and 5 in one atomic step. A denial writes its audit line and, if Cap or the plan denies a run
--   with a record, counts it on the run; apart from that only the rate count and, if it opens a rate window, the time
--   of the key's last use. Beyond the key's rate only the first denials of a window and reason have their own line; the
--   others are counted (decision D70).
-- KEYS: as authorize.rs names them; those of a run are left out if it has no name
-- ARGV: as authorize.rs names them. A limit that does not bind is empty, and so is the estimate of a request without a
--   charge, which ends after the rate. An estimate beyond any amount is `-`: no limit and no counter allows it
-- Hold: 'H estimate day month named checks memo', as hold.rs parses it
-- Returns: 'word generation version plan'; or, when it is approved, 'ok generation version id sealed plan' with id and
--   sealed form of the provider key; or, of a denial without a line, 'counted_in generation version end reason plan'
--   with the end of the rate window in ms; 'runs_full …' is a denial whose line says rate_limited, 'too_much …' one
--   whose line says service_unavailable. The words are those of authorize.rs
-- Cost: O(log keys of the account + log runs of the account), and once a day O(fields of the agent), some hundred.
--   Calls of the store: up to 10 for a denial, 7 for one without a line, 11 for an approval. In addition:
--     2 in the first request of a rate window; 3 in the first denials beyond the rate
--     8 in a run's first call of a minute of the clock; 3 in a new run; 1 in a run that had ended
--     2 where the indexes of runs have ended ones
--     1 in an agent's first call of the month
--     5 where a counter has reached 2^53
-- From other files: `denial` and CEILING (cap.lua), `today` and `month` (period.lua).
-- Counters are int64, but Lua's numbers are doubles, exact for integers below 2^53 only. So this script copies the
-- numbers of a reply or an audit line as text.
local EXACT, MINUTE, RUN_LIFE, OWN_RECORDS = 2 ^ 53, 60000, 3024060000, 10

local day_text = format('%d', today)
local month_text = format('%d', month)
local day_field = 'd' .. day_text
local month_field = 'm' .. month_text
local tracked_field = 't' .. month_text
local slots_field = 'n' .. month_text
local slot_field = 's' .. month_text

local generation_text, version_text, plan_text, tracked_text, slots_text = unpack(call('HMGET', KEYS.account,
  'generation', 'version', 'plan', tracked_field, slots_field))
if not generation_text or not plan_text then return 'no_account 0 0 ' end
local view_text = generation_text .. ' ' .. version_text .. ' ' .. plan_text
local version, same_generation = version_text + 0, generation_text == ARGV.generation
if not same_generation and generation_text + 0 < ARGV.generation + 0 then return 'lost_writes ' .. view_text end
if same_generation and version < ARGV.version + 0 then return 'lost_writes ' .. view_text end
local rank = call('ZRANK', KEYS.active_keys, ARGV.key_id)
if not rank then return 'revoked ' .. view_text end
if plan_text ~= ARGV.plan then return 'other_plan ' .. view_text end

local requests = call('INCR', KEYS.rate)
local over_rate = ARGV.requests ~= '' and requests > ARGV.requests + 0
if over_rate and call('PEXPIRETIME', KEYS.rate) > now_ms + MINUTE then
  -- A window that ends later than any that opens now was opened while the clock was ahead. A new one replaces it.
  call('SET', KEYS.rate, '1')
  requests, over_rate = 1, ARGV.requests + 0 < 1
end
if requests == 1 then
  call('PEXPIRE', KEYS.rate, MINUTE)
  call('HSET', KEYS.virtual_key, 'last_used', format('%d', now_ms))
end
local reason_text, checks_text
local frozen, key_id_text, sealed_key_text, slot, cap, run_cap_text, day_cap_text, month_cap_text
local day_spent_text, month_spent_text, held_text
if ARGV.active_keys ~= '' and rank >= ARGV.active_keys + 0 then
  reason_text = 'plan_key_limit'
  checks_text = format('%d:', rank) .. ARGV.active_keys .. ':,,,,,,'
elseif over_rate then
  reason_text = 'rate_limited'
  checks_text = format(',%d:', requests - 1) .. ARGV.requests .. ':,,,,,'
elseif ARGV.estimate == '' then
  return 'counted ' .. view_text
else
  frozen, key_id_text, sealed_key_text, slot, cap, run_cap_text, day_cap_text, month_cap_text, day_spent_text,
    month_spent_text, held_text = unpack(call('HMGET', KEYS.agent, 'frozen', 'pk_id:' .. ARGV.provider,
    'pk_sealed:' .. ARGV.provider, slot_field, 'cap', 'cap_run', 'cap_day', 'cap_month', day_field, month_field,
    'held'))
  if not key_id_text or not sealed_key_text then
    reason_text = 'no_provider_key'
    checks_text = ',,,,,,'
  end
end
if reason_text then
  if over_rate then
    -- One count for each key, reason and window. A worker writes the record of a window after its end.
    local end_text = format('%d', call('PEXPIRETIME', KEYS.rate))
    local agent_text = string.match(ARGV.memo, '^%S+ %S+') -- with its account
    local window_text = end_text .. ' ' .. reason_text .. ' ' .. agent_text .. ' ' .. ARGV.key_id
    if call('HINCRBY', KEYS.counted_denials, window_text, '1') > OWN_RECORDS then
      return 'counted_in ' .. generation_text .. ' ' .. version_text .. ' ' .. end_text .. ' ' .. reason_text .. ' '
        .. plan_text
    end
  end
  --@ denial_line.lua
  return reason_text .. ' ' .. view_text
end

if not cap then
  cap, run_cap_text, day_cap_text, month_cap_text = unpack(call('HMGET', KEYS.account, 'live_cap', 'live_run',
    'live_day', 'live_month'))
end
run_cap_text = run_cap_text or ''
day_cap_text = day_cap_text or ''
month_cap_text = month_cap_text or ''
local named = KEYS.run
local run_spent_text, run_calls, run_last, run_status
if named then
  run_spent_text, run_calls, run_last, run_status = unpack(call('HMGET', KEYS.run, 'spent', 'calls', 'last', 'status'))
end
local is_first_of_day = not day_spent_text
run_spent_text = run_spent_text or '0'
day_spent_text = day_spent_text or '0'
month_spent_text = month_spent_text or '0'
held_text = held_text or '0'
tracked_text = tracked_text or '0'

local estimate, run_spent, day_spent = math.huge, run_spent_text + 0, day_spent_text + 0
if ARGV.estimate ~= '-' then estimate = ARGV.estimate + 0 end
local month_spent, tracked, slots = month_spent_text + 0, tracked_text + 0, (slots_text or '0') + 0
local word_text
reason_text = denial(estimate, frozen, cap, '', run_cap_text, run_spent, day_cap_text, day_spent, month_cap_text,
  month_spent, slot, ARGV.agents, slots, ARGV.tracked, tracked)
if not reason_text and named and not run_last then
  --@ live_runs.lua
  if live_runs(@KEYS.account_runs, RUN_LIFE) >= ARGV.runs_max + 0 then
    -- A new run beyond the account's budget of runs (decision D71).
    reason_text, word_text = 'rate_limited', 'runs_full'
  end
end
local other_agents = slot and slots - 1 or slots
-- State before this call, one group for each check, including those after the one that decided. For agents: the number
-- of other agents with a slot in the month. The agent's held amount is in the group of its day.
checks_text = format('%d:', rank) .. ARGV.active_keys .. format(':,%d:', requests - 1) .. ARGV.requests .. ':,'
  .. run_spent_text .. ':' .. run_cap_text .. ':,' .. day_spent_text .. ':' .. day_cap_text .. ':' .. held_text .. ','
  .. month_spent_text .. ':' .. month_cap_text .. format(':,%d:', other_agents) .. ARGV.agents .. ':,'
  .. tracked_text .. ':' .. ARGV.tracked .. ':'
-- The time of the last call, the index entry and the expiry of the run's record are written once in a minute of the
-- clock, which saves other calls three writes.
local last_call_ms = run_last and run_last + 0
local run_is_listed = not named or last_call_ms and last_call_ms - last_call_ms % MINUTE == now_ms - now_ms % MINUTE

local held, highest
if not reason_text then
  held = held_text + 0
  highest = math.max(run_spent, month_spent, day_spent, tracked, held) + estimate
  if highest > CEILING then
    -- Every check passes, but the amount cannot be charged: recorded with the reason that the caller receives, without
    -- checks.
    reason_text, word_text, checks_text = 'service_unavailable', 'too_much', ',,,,,,'
  end
end

if reason_text then
  -- A denial by Cap or the plan creates no run record; it is counted on an existing one.
  if run_last and not word_text then
    call('HINCRBY', KEYS.run, 'denied', '1')
    if not run_is_listed then
      --@ run.lua
      list_run(@KEYS.run, @KEYS.agent_runs, @KEYS.account_runs, run_last, RUN_LIFE)
    end
  end
  --@ denial_line.lua
  local answer_text = word_text or reason_text
  return answer_text .. ' ' .. view_text
end

local named_text = named and '1' or '0'
-- The id is refused if a hold or the tombstone of a voided one exists; nothing is written then.
local hold_text = 'H ' .. ARGV.estimate .. ' ' .. day_text .. ' ' .. month_text .. ' ' .. named_text .. ' ' .. checks_text
  .. ' ' .. ARGV.memo
if not call('SET', KEYS.hold, hold_text, 'NX') then return 'known ' .. view_text end
call('ZADD', KEYS.due, format('%d', now_ms + ARGV.hold_life), ARGV.allow_id)

if is_first_of_day then
  --@ prune.lua
  prune(@KEYS.agent)
end
-- The value of a slot that only calls use is `c` and their number: void.lua gives the slot back with the last of them.
-- The value `1` means that the slot is kept.
local slot_text = slot and '1' or 'c1'
local slot_calls_text = slot and slot ~= '1' and string.sub(slot, 2)
if slot_calls_text then
  slot_text = format('c%d', slot_calls_text + 1)
end
local new_version_text = format('%d', version + 1)
if highest < EXACT then
  call('HSET', KEYS.agent, day_field, format('%d', day_spent + estimate), month_field,
    format('%d', month_spent + estimate), 'held', format('%d', held + estimate), slot_field, slot_text)
  call('HSET', KEYS.account, tracked_field, format('%d', tracked + estimate), 'version', new_version_text)
  if named then
    call('HSET', KEYS.run, 'spent', format('%d', run_spent + estimate), 'calls', format('%d', (run_calls or '0') + 1))
  end
else
  call('HINCRBY', KEYS.agent, day_field, ARGV.estimate)
  call('HINCRBY', KEYS.agent, month_field, ARGV.estimate)
  call('HINCRBY', KEYS.agent, 'held', ARGV.estimate)
  call('HSET', KEYS.agent, slot_field, slot_text)
  call('HINCRBY', KEYS.account, tracked_field, ARGV.estimate)
  call('HSET', KEYS.account, 'version', new_version_text)
  if named then
    call('HINCRBY', KEYS.run, 'spent', ARGV.estimate)
    call('HINCRBY', KEYS.run, 'calls', '1')
  end
end
if not slot then call('HINCRBY', KEYS.account, slots_field, '1') end
if not run_is_listed then
  --@ run.lua
  list_run(@KEYS.run, @KEYS.agent_runs, @KEYS.account_runs, run_last, RUN_LIFE)
  -- Only calls use this run: void.lua removes it with the last of them.
  if not run_last then call('HSET', KEYS.run, 'called', '1') end
end
if run_status then call('HDEL', KEYS.run, 'status', 'ended', 'called') end
return 'ok ' .. generation_text .. ' ' .. new_version_text .. ' ' .. key_id_text .. ' ' .. sealed_key_text .. ' '
  .. plan_text
