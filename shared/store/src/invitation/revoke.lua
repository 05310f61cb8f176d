-- Purpose: revoke an open invitation.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `invitation` is the invitation as read
-- Returns: {'revoked'} | {'missing'} | {'no_account'}
-- Cost: O(1); 7 calls
if call('HGET', KEYS.invitations, ARGV.email) ~= ARGV.invitation then return {'missing'} end

call('HDEL', KEYS.invitations, ARGV.email)
recorded()
return {'revoked'}
