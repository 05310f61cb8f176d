-- Purpose: decide on one proxied call and, if nothing speaks against it, charge its estimate and open a hold:
--   specification §4.4 steps 1, 2, 3 and 5 in one atomic step. A denial writes its audit line and, when Cap or the plan
--   denies a run that has a record, that it was denied; besides only the rate count and, when it opens a rate window, the time
--   of the key's last use. Beyond the key's rate only the first denials of a window and reason have a line of their own; the
--   others are counted (decision D70).
-- KEYS: 1 account record  2 active keys  3 rate  4 agent  5 hold  6 due  7 run  8 virtual key  9 audit log
--   10 runs of the agent  11 counted denials of the bucket  12 runs of the account (any key in an unnamed run)
-- ARGV: 1 key id  2 plan that the limits below belong to  3 generation known  4 lowest version acceptable
--   5 active keys  6 requests a minute  7 agents a month  8 tracked nanos a month (each '' = unlimited)
--   9 allow id  10 memo kept in the hold and in the audit line  11 estimate nanos ('' = stop after the rate: a probe)
--   12 run, when the caller named it ('' = unnamed)  13 life of the hold ms
--   14, 15 fields of the agent that hold the id and the sealed form of its provider key  16 most runs of the account
-- Returns: 'word generation version plan'; or, when it is approved, 'ok generation version id sealed plan' with id and
--   sealed form of the provider key; or, of a denial without a line, 'counted_in generation version end reason plan' with the
--   end of the rate window in ms; 'runs_full …' is a denial whose line says rate_limited. The words are those of authorize.rs
-- Cost: O(log keys of the account + log runs of the agent), and O(fields of the agent, of which there are some hundred) once
--   a day; up to 10 calls for a denial, 6 for one that is counted, 11 for an approval, two more in the first call of a key's
--   minute and in the first denials beyond its rate, four in a run's first of a minute of the clock, four more in a new run,
--   one in a run that had ended, two in an agent's first call of the month, and four more where a counter has reached 2^53
-- Counters are int64; a double is exact for integers below 2^53 only. Texts that are told stay texts.
local CEILING, EXACT, MINUTE, RUN_LIFE, OWN_RECORDS = 9e18, 2 ^ 53, 60000, 3024060000, 10

local day_text = format('%d', today)
local month_text = format('%d', month)
local day_field = 'd' .. day_text
local month_field = 'm' .. month_text
local tracked_field = 't' .. month_text
local slots_field = 'n' .. month_text

local account = call('HMGET', KEYS[1], 'generation', 'version', 'plan', tracked_field, slots_field)
local generation_text = account[1]
local plan_text = account[3]
if not generation_text or not plan_text then return 'no_account 0 0 ' end
local view_text = generation_text .. ' ' .. account[2] .. ' ' .. plan_text
local changes, same = account[2] + 0, generation_text == ARGV[3]
if not same and generation_text + 0 < ARGV[3] + 0 then return 'stale ' .. view_text end
if same and changes < ARGV[4] + 0 then return 'stale ' .. view_text end
local rank = call('ZRANK', KEYS[2], ARGV[1])
if not rank then return 'revoked ' .. view_text end
if plan_text ~= ARGV[2] then return 'other_plan ' .. view_text end

local requests = call('INCR', KEYS[3])
if requests == 1 then
  call('PEXPIRE', KEYS[3], MINUTE)
  call('HSET', KEYS[8], 'last_used', format('%d', now_ms))
end
local over = ARGV[6] ~= '' and requests > ARGV[6] + 0
local agent, reason_text, checks_text
if ARGV[5] ~= '' and rank >= ARGV[5] + 0 then
  reason_text = 'plan_key_limit'
  checks_text = format('%d:%s:,,,,,,', rank, ARGV[5])
elseif over then
  reason_text = 'rate_limited'
  checks_text = format(',%d:%s:,,,,,', requests - 1, ARGV[6])
elseif ARGV[11] == '' then
  return 'counted ' .. view_text
else
  agent = call('HMGET', KEYS[4], 'frozen', ARGV[14], ARGV[15], 'cap', 'cap_run', 'cap_day', 'cap_month', day_field,
    month_field, 'slot', 'held')
  if not agent[2] or not agent[3] then
    reason_text = 'no_provider_key'
    checks_text = ',,,,,,'
  end
end
if reason_text then
  if over then
    -- One count for each key, reason and window; whoever finds it after the window's end writes its record.
    local end_text = format('%d', call('PEXPIRETIME', KEYS[3]))
    local agent_text = string.match(ARGV[10], '^%S+ %S+') -- and its account
    local window_text = end_text .. ' ' .. reason_text .. ' ' .. agent_text .. ' ' .. ARGV[1]
    if call('HINCRBY', KEYS[11], window_text, '1') > OWN_RECORDS then
      return 'counted_in ' .. generation_text .. ' ' .. account[2] .. ' ' .. end_text .. ' ' .. reason_text .. ' '
        .. plan_text
    end
  end
  local seq = call('HINCRBY', KEYS[1], 'live_audit_seq', '1')
  local estimate_text = ARGV[11] == '' and '-' or ARGV[11]
  call('RPUSH', KEYS[9], format('%d %d D ', seq, now_ms) .. reason_text .. ' ' .. ARGV[9] .. ' ' .. estimate_text .. ' '
    .. checks_text .. ' ' .. ARGV[10])
  return reason_text .. ' ' .. view_text
end

local policy, at = agent, 4
if not agent[4] then
  policy, at = call('HMGET', KEYS[1], 'live_cap', 'live_run', 'live_day', 'live_month'), 1
end
local run_cap_text = policy[at + 1] or ''
local day_cap_text = policy[at + 2] or ''
local month_cap_text = policy[at + 3] or ''
local named = ARGV[12] ~= ''
local run = named and call('HMGET', KEYS[7], 'spent', 'calls', 'last', 'status') or {}
local run_spent_text = run[1] or '0'
local day_spent_text = agent[8] or '0'
local month_spent_text = agent[9] or '0'
local held_text = agent[11] or '0'
local tracked_text = account[4] or '0'

local estimate, run_spent, day_spent = ARGV[11] + 0, run_spent_text + 0, day_spent_text + 0
local month_spent, tracked, slots = month_spent_text + 0, tracked_text + 0, (account[5] or '0') + 0
local has_slot, charges = agent[10] == month_field, estimate > 0
local word_text
-- The first of Cap's checks that fails.
if agent[1] then
  reason_text = 'frozen'
elseif policy[at] ~= '1' then
  reason_text = 'cap_disabled'
elseif charges and run_cap_text ~= '' and run_spent + estimate > run_cap_text + 0 then
  reason_text = 'per_run_limit'
elseif charges and day_cap_text ~= '' and day_spent + estimate > day_cap_text + 0 then
  reason_text = 'daily_limit'
elseif charges and month_cap_text ~= '' and month_spent + estimate > month_cap_text + 0 then
  reason_text = 'monthly_limit'
elseif not has_slot and ARGV[7] ~= '' and slots >= ARGV[7] + 0 then
  reason_text = 'plan_agent_limit'
elseif charges and ARGV[8] ~= '' and tracked + estimate > ARGV[8] + 0 then
  reason_text = 'plan_limit'
elseif named and not run[3] and call('ZCARD', KEYS[12]) >= ARGV[16] + 0 then
  -- A new run beyond the account's budget of runs (decision D71).
  reason_text, word_text = 'rate_limited', 'runs_full'
end
local others = has_slot and slots - 1 or slots
-- What stood before this call, a group for each check, also for those after the one that decided. Of agents, the others
-- that have a place in the month. What the agent holds is said with its day.
checks_text = format('%d:%s:,%d:%s:,', rank, ARGV[5], requests - 1, ARGV[6]) .. run_spent_text .. ':' .. run_cap_text
  .. ':,' .. day_spent_text .. ':' .. day_cap_text .. ':' .. held_text .. ',' .. month_spent_text .. ':' .. month_cap_text
  .. format(':,%d:', others) .. ARGV[7] .. ':,' .. tracked_text .. ':' .. ARGV[8] .. ':'
-- When it was seen, its index and the end of its record are written once in a minute of the clock, which spares other
-- calls three writes.
local listed = not named or run[3] and run[3] - run[3] % MINUTE == now_ms - now_ms % MINUTE

if reason_text then
  -- A denial makes no run record: it is counted on one that is there.
  if run[3] then
    call('HINCRBY', KEYS[7], 'denied', '1')
    if not listed then
      --@ run.lua
      list_run(7, 10, 12, run[3], 12, RUN_LIFE)
    end
  end
  local seq = call('HINCRBY', KEYS[1], 'live_audit_seq', '1')
  call('RPUSH', KEYS[9], format('%d %d D ', seq, now_ms) .. reason_text .. ' ' .. ARGV[9] .. ' ' .. ARGV[11] .. ' '
    .. checks_text .. ' ' .. ARGV[10])
  local answer_text = word_text or reason_text
  return answer_text .. ' ' .. view_text
end

local held = held_text + 0
local named_text = named and '1' or '0'
local top = math.max(run_spent, month_spent, day_spent, tracked, held) + estimate
if top > CEILING then return 'too_much ' .. view_text end
-- The id is refused when a hold or the mark of a voided one is there; then nothing is written.
local hold_text = 'H ' .. ARGV[11] .. ' ' .. day_text .. ' ' .. month_text .. ' ' .. named_text .. ' ' .. checks_text
  .. ' ' .. ARGV[10]
if not call('SET', KEYS[5], hold_text, 'NX') then return 'known ' .. view_text end
call('ZADD', KEYS[6], format('%d', now_ms + ARGV[13]), ARGV[9])

if not agent[8] then
  --@ prune.lua
  prune(4)
end
local version_text = format('%d', changes + 1)
if top < EXACT then
  call('HSET', KEYS[4], day_field, format('%d', day_spent + estimate), month_field,
    format('%d', month_spent + estimate), 'held', format('%d', held + estimate))
  call('HSET', KEYS[1], tracked_field, format('%d', tracked + estimate), 'version', version_text)
  if named then
    call('HSET', KEYS[7], 'spent', format('%d', run_spent + estimate), 'calls', format('%d', (run[2] or '0') + 1))
  end
else
  call('HINCRBY', KEYS[4], day_field, ARGV[11])
  call('HINCRBY', KEYS[4], month_field, ARGV[11])
  call('HINCRBY', KEYS[4], 'held', ARGV[11])
  call('HINCRBY', KEYS[1], tracked_field, ARGV[11])
  call('HSET', KEYS[1], 'version', version_text)
  if named then
    call('HINCRBY', KEYS[7], 'spent', ARGV[11])
    call('HINCRBY', KEYS[7], 'calls', '1')
  end
end
if not has_slot then
  call('HSET', KEYS[4], 'slot', month_field)
  call('HINCRBY', KEYS[1], slots_field, '1')
end
if not listed then
  --@ run.lua
  list_run(7, 10, 12, run[3], 12, RUN_LIFE)
end
if run[4] then call('HDEL', KEYS[7], 'status', 'ended') end
return 'ok ' .. generation_text .. ' ' .. version_text .. ' ' .. agent[2] .. ' ' .. agent[3] .. ' ' .. plan_text
