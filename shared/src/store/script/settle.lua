-- Purpose: resolve a hold: move run, day, month and tracked USD of the hold's own periods by the difference between the
--   real cost and the estimate, and forget the hold. A hold that was already kept by the reaper is corrected the same way.
-- KEYS: 1 account record  2 agent  3 run  4 hold  5 due  6 kept index  7 kept hold  8 audit log
-- ARGV: 1 allow id  2 estimate nanos  3 cost nanos  4 how it ends: 'settled' | 'released' | 'estimated'. A kept hold whose
--   cost is known now is 'corrected'
-- Returns: {'settled'} | {'missing'} (nothing to move, nothing moved) | {'mismatch'} (not this estimate)
-- Cost: O(log open holds); 11 calls, 9 in an unnamed run, one more for a kept hold, three more where a counter has
--   reached 2^53
local value = redis.call('GET', KEYS[4])
local kept = not value and redis.call('GET', KEYS[7])
if value == 'V' or not (value or kept) then return {'missing'} end

if kept then
  local how = ARGV[4] == 'estimated' and ARGV[4] or 'corrected'
  if not resolve(kept, false, how, ARGV[3], ARGV[2]) then return {'mismatch'} end
  redis.call('DEL', KEYS[7])
  redis.call('ZREM', KEYS[6], ARGV[1])
  return {'settled'}
end
if not resolve(value, true, ARGV[4], ARGV[3], ARGV[2]) then return {'mismatch'} end
redis.call('DEL', KEYS[4])
redis.call('ZREM', KEYS[5], ARGV[1])
return {'settled'}
