-- Purpose: reserve a caller's idempotency key for a request whose outcome another account's bucket decides (decisions
--   D26, D28): until its intent is written here, no other request of the caller can use the key.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them. `fingerprint` is that of the request
-- Returns: {'claimed'} (now, or before for the same request) | {'known'} (the key has a record, or another request's
--   claim)
-- Cost: O(1); 1 or 2 calls
local record = call('HMGET', KEYS.intent, 'state', 'fp')
if record[1] then
  if record[1] == 'claimed' and record[2] == ARGV.fingerprint then return {'claimed'} end
  return {'known'}
end

call('HSET', KEYS.intent, 'id', ARGV.intent, 'state', 'claimed', 'fp', ARGV.fingerprint)
return {'claimed'}
