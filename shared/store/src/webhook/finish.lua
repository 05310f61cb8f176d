-- Purpose: record the outcome of an attempt, and schedule the next one.
-- KEYS: as deliver.rs names them
-- ARGV: as deliver.rs names them. `before` and `after` are texts of the delivery; `outcome` is 'delivered', 'failed',
--   'retry' or 'park'; `pause` is the time before the next attempt, in ms; `history_max` is the maximum number of
--   finished deliveries
-- Returns: {'kept'} | {'stale'} (it is gone, or another server attempted it meanwhile; nothing changed)
-- Cost: O(log deliveries); up to 11 calls
if call('HGET', KEYS.deliveries, ARGV.number) ~= ARGV.before then return {'stale'} end
local parked_at = call('ZSCORE', KEYS.parked, ARGV.number)

call('HSET', KEYS.deliveries, ARGV.number, ARGV.after)
call('ZREM', KEYS.due, ARGV.number)
if ARGV.outcome == 'park' then
  -- Each later event triggers one attempt: after the attempt of one event while parked, the next event triggers the
  -- next.
  local events = call('HGET', KEYS.account, format('%s_events', ARGV.mode)) or '0'
  call('ZADD', KEYS.parked, parked_at and tonumber(parked_at) + 1 or events, ARGV.number)
else
  call('ZREM', KEYS.parked, ARGV.number)
  if ARGV.outcome == 'retry' then
    call('ZADD', KEYS.due, now_ms + tonumber(ARGV.pause), ARGV.number)
  else
    call('ZADD', KEYS[ARGV.outcome == 'delivered' and @KEYS.delivered or @KEYS.failed], now_ms, ARGV.number)
    trim(@KEYS.deliveries, @KEYS.delivered, @KEYS.failed, ARGV.history_max)
  end
end
return {'kept'}
