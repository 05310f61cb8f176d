-- Fragment: the end of a hold, shared by `settle`, `void` and `reap`. Needs clock.lua.
-- Uses the keys of a hold (hold.rs), and ARGV.allow_id.

-- Moves the counters of the hold's own periods from the estimate to `cost_text`, and writes the audit line. If the hold
-- was `open`, subtracts its estimate from the agent's `held`, which never falls below zero.
-- Returns whether the run has a record. A record expires, so the change of `spent` may create it anew, without an
-- expiry and with a negative amount. Such a record is removed.
-- The caller removes the hold first. If the script breaks off in this function, a repeated script finds no hold, and
-- moves nothing twice.
-- The account's version stays the same, so it does not detect a store that lost this end. In such a store the hold is
-- open again with its whole estimate charged, and will be settled, voided or kept again. Until it is settled again,
-- the cost beyond the estimate is not counted.
-- `measured_text` has the edge's measurements of the call, or is empty. A line with measurements has version 2, which
-- an earlier release neither seals nor shows (shared/domain/src/entry.rs). `ended_by_text` names who ended the hold,
-- by a word of shared/domain/src/entry/ended_by.rs; it is empty if the hold's edge did. A line with this word has
-- version 3. A line whose measurements have details of the charge, as in `tier=flex`, has version 4.
local function end_hold(value_text, open, how_text, cost_text, measured_text, ended_by_text)
  local estimate_text, day_text, month_text, named = string.match(value_text, '^H (%d+) (%d+) (%d+) ([01]) ')
  local by = cost_text - estimate_text -- amounts are below 2^53
  local by_text = format('%d', by)
  -- A counter that was removed meanwhile (prune.lua) begins at nothing, not below it.
  for _, field_text in ipairs({'d' .. day_text, 'm' .. month_text}) do
    if call('HINCRBY', KEYS.agent, field_text, by_text) < 0 then call('HDEL', KEYS.agent, field_text) end
  end
  if open and call('HINCRBY', KEYS.agent, 'held', format('%d', -estimate_text)) < 0 then
    call('HSET', KEYS.agent, 'held', '0')
  end
  if call('HINCRBY', KEYS.account, 't' .. month_text, by_text) < 0 then
    call('HDEL', KEYS.account, 't' .. month_text)
  end
  local spent = named == '1'
  -- If nothing was spent before, the record may not exist: every existing record counts an approved call.
  if spent and call('HINCRBY', KEYS.run, 'spent', by_text) == by and call('HEXISTS', KEYS.run, 'calls') == 0 then
    call('HDEL', KEYS.run, 'spent')
    spent = false
  end
  local seq = call('HINCRBY', KEYS.account, 'live_audit_seq', '1')
  local version_text = ''
  local call_text = value_text
  if measured_text ~= '' then
    version_text = 'v2 '
    call_text = measured_text .. ' ' .. call_text
  end
  if ended_by_text ~= '' then
    version_text = 'v3 '
    call_text = ended_by_text .. ' ' .. call_text
  end
  if string.find(measured_text, '=') then
    version_text = 'v4 '
  end
  call('RPUSH', KEYS.audit_log, format('%d %d ', seq, now_ms) .. version_text .. 'A ' .. how_text .. ' ' .. cost_text .. ' '
    .. ARGV.allow_id .. ' ' .. call_text)
  return spent
end
