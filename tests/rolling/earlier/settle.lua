#!lua flags=allow-oom
-- settle.lua with its fragments as the release before measurements and extensions ran it. It stays as it is.
-- Fragment: the store's clock, the only one that decides anything. Locals are found faster than fields of globals.
local call, format = redis.call, string.format
local clock = call('TIME')
local micros = clock[2] + 0
local now_ms = clock[1] * 1000 + (micros - micros % 1000) / 1000
-- Fragment: the end of a hold, which `settle`, `void` and `reap` have in common. Needs clock.lua.
-- Takes the keys of a hold (hold.rs), and ARGV[1].

-- Moves the counters of the hold's own periods from the estimate to `cost_text`, ends what its agent holds when the hold was
-- `open` (that never falls below zero), and writes the audit line. Returns whether the run has a record with spending: that
-- expires, and it must not come back without a life and with less than nothing spent.
-- Whoever calls it removes the hold first: what breaks off here must not begin again and move the same twice.
-- The end of a hold leaves the account's version as it is. That guards against a store that lost writes, and after a lost
-- end the hold is open again with its whole estimate charged, to be settled, voided or kept anew. Only what the call cost
-- beyond its estimate is then not counted until it is settled again.
local function end_hold(value_text, open, how_text, cost_text)
  local estimate_text, day_text, month_text, named = string.match(value_text, '^H (%d+) (%d+) (%d+) ([01]) ')
  local by = cost_text - estimate_text -- amounts end below 2^53
  local by_text = format('%d', by)
  call('HINCRBY', KEYS[2], 'd' .. day_text, by_text)
  call('HINCRBY', KEYS[2], 'm' .. month_text, by_text)
  if open and call('HINCRBY', KEYS[2], 'held', format('%d', -estimate_text)) < 0 then
    call('HSET', KEYS[2], 'held', '0')
  end
  call('HINCRBY', KEYS[1], 't' .. month_text, by_text)
  local spent = named == '1'
  -- Where nothing was spent before there may be no record: an approved call is counted in every one.
  if spent and call('HINCRBY', KEYS[3], 'spent', by_text) == by and call('HEXISTS', KEYS[3], 'calls') == 0 then
    call('HDEL', KEYS[3], 'spent')
    spent = false
  end
  local seq = call('HINCRBY', KEYS[1], 'live_audit_seq', '1')
  call('RPUSH', KEYS[8], format('%d %d A ', seq, now_ms) .. how_text .. ' ' .. cost_text .. ' ' .. ARGV[1] .. ' ' .. value_text)
  return spent
end
-- Purpose: resolve a hold: move run, day, month and tracked USD of the hold's own periods by the difference between the
--   real cost and the estimate, and forget the hold. A hold that was already kept by the reaper is corrected the same way.
-- KEYS: as hold.rs names them
-- ARGV: as settle.rs names them; `how` is 'settled' | 'released' | 'estimated'. A kept hold whose cost is known now is
--   'corrected'. Generation and version are those of the account when the hold was opened, or are left out
-- Returns: 'settled' | 'missing' (nothing to move, nothing moved) | 'mismatch' (not this estimate)
--   | 'lacks_writes' (there is no hold, and the account has not come as far as when it was opened)
-- Cost: O(log open holds); 11 calls, 10 in an unnamed run, one more where its agent held less, two more where its run has
--   no record; 2 calls where there is no hold, and one more to say why
local value_text = call('GET', KEYS[4])
local kept = not value_text and call('GET', KEYS[7])
if value_text == 'V' then return 'missing' end
if not (value_text or kept) then
  -- Fragment: whether the store can be believed when it has no such hold. Needs clock.lua.
-- Takes KEYS[1].

-- Whether the account is not here, or has not come as far as `generation_text` and `version_text`, which were seen before: the
-- store is another ledger then, or lost writes, and it may lack the change that opened the hold.
local function lacks_writes(generation_text, version_text)
  local account = call('HMGET', KEYS[1], 'generation', 'version')
  if not account[1] then return true end
  local generations = account[1] - generation_text
  return generations < 0 or generations == 0 and account[2] - version_text < 0
end
  return ARGV[5] and lacks_writes(ARGV[5], ARGV[6]) and 'lacks_writes' or 'missing'
end

if string.match(value_text or kept, '^H (%d+) ') ~= ARGV[2] then return 'mismatch' end
-- The hold goes first. A script that breaks off, since something in the account is not of the kind that it should be, is
-- not undone: whoever tries again then finds nothing to move, and what was not moved stays charged.
if kept then
  call('DEL', KEYS[7])
  call('ZREM', KEYS[6], ARGV[1])
  end_hold(kept, false, ARGV[4] == 'estimated' and ARGV[4] or 'corrected', ARGV[3])
else
  call('DEL', KEYS[4])
  call('ZREM', KEYS[5], ARGV[1])
  end_hold(value_text, true, ARGV[4], ARGV[3])
end
return 'settled'
