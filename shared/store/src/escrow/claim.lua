-- Purpose: keep a caller's idempotency key for a request whose outcome another account's bucket decides (decisions D26, D28):
--   until its intent is written here, no other request of the caller can take the key.
-- KEYS: 1 intent
-- ARGV: 1 intent id  2 fingerprint of the request
-- Returns: {'claimed'} (now, or before for the same request) | {'known'} (the key has a record, or another request's claim)
-- Cost: O(1); 1 or 2 calls
local record = redis.call('HMGET', KEYS[1], 'state', 'fp')
if record[1] then
  if record[1] == 'claimed' and record[2] == ARGV[2] then return {'claimed'} end
  return {'known'}
end

redis.call('HSET', KEYS[1], 'id', ARGV[1], 'state', 'claimed', 'fp', ARGV[2])
return {'claimed'}
