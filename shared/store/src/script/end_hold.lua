-- Fragment: the end of a hold, shared by `settle`, `void` and `reap`. Needs clock.lua.
-- Uses the keys of a hold (hold.rs), and ARGV.allow_id.

-- Moves the counters of the hold's own periods from the estimate to `cost_text`, ends what its agent holds when the
-- hold was `open` (that never falls below zero), and writes the audit line. Returns whether the run has a record with
-- spending: that expires, and it must not come back without a life and with less than nothing spent.
-- Whoever calls it removes the hold first: what breaks off here must not begin again and move the same twice.
-- The end of a hold leaves the account's version as it is. That guards against a store that lost writes, and after a
-- lost end the hold is open again with its whole estimate charged, to be settled, voided or kept anew. Only what the
-- call cost beyond its estimate is then not counted until it is settled again.
-- `measured_text` is what the edge measured of the call, or empty. A line that says it is of version 2: an earlier
-- release neither seals nor shows it (shared/domain/src/entry.rs). `ended_by_text` is who ends the hold if it is
-- not its edge, a word of shared/domain/src/entry/ended_by.rs, or empty; a line that says it is of version 3.
local function end_hold(value_text, open, how_text, cost_text, measured_text, ended_by_text)
  local estimate_text, day_text, month_text, named = string.match(value_text, '^H (%d+) (%d+) (%d+) ([01]) ')
  local by = cost_text - estimate_text -- amounts are below 2^53
  local by_text = format('%d', by)
  call('HINCRBY', KEYS.agent, 'd' .. day_text, by_text)
  call('HINCRBY', KEYS.agent, 'm' .. month_text, by_text)
  if open and call('HINCRBY', KEYS.agent, 'held', format('%d', -estimate_text)) < 0 then
    call('HSET', KEYS.agent, 'held', '0')
  end
  call('HINCRBY', KEYS.account, 't' .. month_text, by_text)
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
  call('RPUSH', KEYS.audit_log, format('%d %d ', seq, now_ms) .. version_text .. 'A ' .. how_text .. ' ' .. cost_text .. ' '
    .. ARGV.allow_id .. ' ' .. call_text)
  return spent
end
