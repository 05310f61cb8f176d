-- Purpose: draw the next number of a bucket's series. A number is the millisecond of the draw, or the one after the
--   last number; so a number that was lost with a server is not drawn again, even if it was never confirmed. The record
--   with the number is written later to the same server, and is confirmed together with the draw.
-- KEYS: as number.rs names them. `counter` is the last count drawn
-- ARGV: as number.rs names them. `epoch` is the time of count 0 (ms)
-- Returns: {count}
-- Cost: O(1); 3 calls
local last = tonumber(call('GET', KEYS.counter) or '0')
local count = math.max(last + 1, now_ms - tonumber(ARGV.epoch), tonumber(ARGV.lowest_count))

call('SET', KEYS.counter, format('%d', count))
return {format('%d', count)}
