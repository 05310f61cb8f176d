-- Fragment: the end of a hold, for `settle`, `void` and `reap`. Needs clock.lua. Statements and no function, since
-- making one costs 1,500 instructions.
-- Uses the keys of a hold (hold.rs), ARGV.allow_id, and these locals:
--   hold_text: the stored text of the hold; estimate_text, day_text, month_text, named_text: its words after `H`
--   is_open: true for an open hold, false for a kept one. The estimate of an open one is subtracted from the agent's
--     `held`, which never falls below zero
--   outcome_text, cost_text: its outcome, and the amount that stays charged
--   measured_text: the edge's measurements of the call, or ''
--   ended_by_text: who ended the hold, by a word of shared/domain/src/entry/ended_by.rs; '' if the hold's edge did

-- Moves the counters of the hold's own periods from the estimate to the cost, and writes the audit line. Sets
-- `has_run`: true if the run has a record. A record expires, so the change of `spent` may create it anew, without an
-- expiry and with a negative amount. Such a record is removed.
-- The script removes the hold first. If it breaks off in this fragment, a repeated script finds no hold, and moves
-- nothing twice.
-- The account's version stays the same, so it does not detect a store that lost this end. In such a store the hold is
-- open again with its whole estimate charged, and will be settled, voided or kept again. Until it is settled again,
-- the cost beyond the estimate is not counted.
local by = cost_text - estimate_text -- amounts are below 2^53
local by_text = format('%d', by)
local day_field = 'd' .. day_text
local month_field = 'm' .. month_text
local tracked_field = 't' .. month_text
-- A counter that was removed meanwhile (prune.lua) begins at nothing, not below it.
if call('HINCRBY', KEYS.agent, day_field, by_text) < 0 then call('HDEL', KEYS.agent, day_field) end
if call('HINCRBY', KEYS.agent, month_field, by_text) < 0 then call('HDEL', KEYS.agent, month_field) end
if is_open and call('HINCRBY', KEYS.agent, 'held', format('%d', -estimate_text)) < 0 then
  call('HSET', KEYS.agent, 'held', '0')
end
if call('HINCRBY', KEYS.account, tracked_field, by_text) < 0 then call('HDEL', KEYS.account, tracked_field) end
local has_run = named_text == '1'
-- If nothing was spent before, the record may not exist: every existing record counts an approved call.
if has_run and call('HINCRBY', KEYS.run, 'spent', by_text) == by and call('HEXISTS', KEYS.run, 'calls') == 0 then
  call('HDEL', KEYS.run, 'spent')
  has_run = false
end
local seq = call('HINCRBY', KEYS.account, 'live_audit_seq', '1')
-- A line with measurements has version 2, one with the word of who ended the hold version 3, and one whose measurements
-- have details of the charge, as in `tier=flex`, version 4. An earlier release neither seals nor shows a line of a
-- version that it does not know (shared/domain/src/entry.rs).
local version_text, details_text = '', ''
if measured_text ~= '' then
  version_text = 'v2 '
  details_text = measured_text .. ' '
end
if ended_by_text ~= '' then
  version_text = 'v3 '
  details_text = ended_by_text .. ' ' .. details_text
end
if string.find(measured_text, '=') then
  version_text = 'v4 '
end
call('RPUSH', KEYS.audit_log, format('%d %d ', seq, now_ms) .. version_text .. 'A ' .. outcome_text .. ' ' .. cost_text
  .. ' ' .. ARGV.allow_id .. ' ' .. details_text .. hold_text)
