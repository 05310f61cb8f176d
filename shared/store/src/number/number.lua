-- Purpose: draw the next number of a bucket's series. A number is the millisecond of the draw, or the one after the
--   last number; so a number that was lost with a server is not drawn again, even if it was never confirmed. The record
--   with the number is written later to the same server, and is confirmed together with the draw.
-- KEYS: as number.rs names them. `counter` is the last place drawn
-- ARGV: as number.rs names them. `epoch` is the time of place 0 (ms)
-- Returns: {place}
-- Cost: O(1); 3 calls
local last = tonumber(call('GET', KEYS.counter) or '0')
local place = math.max(last + 1, now_ms - tonumber(ARGV.epoch), tonumber(ARGV.lowest_place))

call('SET', KEYS.counter, format('%d', place))
return {format('%d', place)}
