-- Purpose: take an open invitation back.
-- KEYS: 1 account record  2 live audit log  3 invitations
-- ARGV: 1 mode ('live')  2 audit entry  3 e-mail  4 the invitation as it was seen
-- Returns: {'revoked'} | {'missing'} | {'no_account'}
-- Cost: O(1); 7 calls
if redis.call('HGET', KEYS[3], ARGV[3]) ~= ARGV[4] then return {'missing'} end

redis.call('HDEL', KEYS[3], ARGV[3])
recorded()
return {'revoked'}
