-- Purpose: turn a hold that nobody settled by its deadline into a kept one: the charge stays, and becomes visible.
-- KEYS: as hold.rs names them
-- ARGV: as reap.rs names them
-- Returns: {'kept'} | {'early'} (its deadline has not passed) | {'gone'} (settled or voided meanwhile)
-- Cost: O(log open and kept holds); 2 to 19 calls
local EXPIRED_MAX = 10 -- more than the one added, so that expired entries do not make the index grow
local deadline = call('ZSCORE', KEYS.due, ARGV.allow_id)
if deadline and tonumber(deadline) > now_ms then return {'early'} end
local hold_text = call('GET', KEYS.hold)
if not hold_text or hold_text == 'V' then
  call('ZREM', KEYS.due, ARGV.allow_id)
  return {'gone'}
end
local estimate_text, day_text, month_text, named_text = string.match(hold_text, '^H (%d+) (%d+) (%d+) ([01]) ')
call('SET', KEYS.kept_hold, hold_text, 'PX', ARGV.kept_life)
local ended = call('ZRANGEBYSCORE', KEYS.kept_index, '-inf', now_ms - tonumber(ARGV.kept_life), 'LIMIT', 0, EXPIRED_MAX)
if ended[1] then call('ZREM', KEYS.kept_index, unpack(ended)) end
call('ZADD', KEYS.kept_index, now_ms, ARGV.allow_id)
call('DEL', KEYS.hold)
call('ZREM', KEYS.due, ARGV.allow_id)
local is_open, outcome_text, cost_text, measured_text, ended_by_text = true, 'kept', estimate_text, '', ARGV.ended_by
--@ end_hold.lua
return {'kept'}
