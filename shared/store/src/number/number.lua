-- Purpose: draw the next number of a bucket's series. A number is the millisecond in which it is drawn, or the one
--   after the last drawn; so one that a lost server takes back is not drawn again, also where nobody waited until it
--   was safe. Whatever gets the number is written later on the same server: where that is known, the number is.
-- KEYS: as number.rs names them. `counter` is the last place that was drawn
-- ARGV: as number.rs names them. `epoch` is where the clock of places begins (ms)
-- Returns: {place}
-- Cost: O(1); 3 calls
local last = tonumber(call('GET', KEYS.counter) or '0')
local place = math.max(last + 1, now_ms - tonumber(ARGV.epoch), tonumber(ARGV.lowest_place))

call('SET', KEYS.counter, format('%d', place))
return {format('%d', place)}
