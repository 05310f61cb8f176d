-- Purpose: draw the next number of a bucket's series. A number is the millisecond in which it is drawn, or the one after the
--   last drawn; so one that a lost server takes back is not drawn again, also where nobody waited until it was safe. Whatever
--   gets the number is written later on the same server: where that is known, the number is.
-- KEYS: 1 the last place that was drawn
-- ARGV: 1 where the clock of places begins (ms)  2 the lowest place
-- Returns: {place}
-- Cost: O(1); 3 calls
local last = tonumber(call('GET', KEYS[1]) or '0')
local place = math.max(last + 1, now_ms - tonumber(ARGV[1]), tonumber(ARGV[2]))

call('SET', KEYS[1], format('%d', place))
return {format('%d', place)}
