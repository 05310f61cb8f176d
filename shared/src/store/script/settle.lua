-- Purpose: resolve a hold: move run, day, month and tracked USD of the hold's own periods by the difference between the
--   real cost and the estimate, and forget the hold. A hold that was already kept by the reaper is corrected the same way.
-- KEYS: 1 account record  2 agent  3 run  4 hold  5 due  6 kept index  7 kept hold
-- ARGV: 1 allow id  2 estimate nanos  3 difference nanos (signed)
-- Returns: {'settled', version} | {'missing'} (nothing to move, nothing moved) | {'mismatch'} (not this estimate)
-- Cost: O(log open holds); 5 to 9 calls
local value = redis.call('GET', KEYS[4])
local kept = false
if not value then
  value = redis.call('GET', KEYS[7])
  kept = true
end
if not value or value == 'V' then return {'missing'} end
local estimate, day, month, named = string.match(value, '^H (%d+) (%d+) (%d+) ([01]) ')
if estimate ~= ARGV[2] then return {'mismatch'} end
if ARGV[3] ~= '0' then
  redis.call('HINCRBY', KEYS[2], string.format('d%s', day), ARGV[3])
  redis.call('HINCRBY', KEYS[2], string.format('m%s', month), ARGV[3])
  redis.call('HINCRBY', KEYS[1], string.format('t%s', month), ARGV[3])
  if named == '1' and redis.call('EXISTS', KEYS[3]) == 1 then redis.call('HINCRBY', KEYS[3], 'spent', ARGV[3]) end
end
if kept then
  redis.call('DEL', KEYS[7])
  redis.call('ZREM', KEYS[6], ARGV[1])
else
  redis.call('DEL', KEYS[4])
  redis.call('ZREM', KEYS[5], ARGV[1])
end
return {'settled', redis.call('HINCRBY', KEYS[1], 'version', 1)}
