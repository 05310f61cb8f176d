-- Purpose: create the invited user, and open the user's first session.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `invitation` is the invitation as read, `user` the new record
--   (JSON), `session` the session's record after its times, `life` the lifetime of the session in ms, `inviter` the
--   start of the inviter's record (JSON)
-- Returns: {'joined', created, end} | {'missing'} (the invitation was used, revoked or has expired, or its inviter is
--   not an owner any more) | {'exists'} | {'too_many'} | {'no_account'}
-- Cost: O(users of the account); 15 calls
if call('HGET', KEYS.invitations, ARGV.email) ~= ARGV.invitation then return {'missing'} end
if tonumber(string.match(ARGV.invitation, '^%d+ (%d+) ')) <= now_ms then return {'missing'} end
if call('HEXISTS', KEYS.users, ARGV.email) == 1 then return {'exists'} end
if call('HLEN', KEYS.users) >= tonumber(ARGV.users_max) then return {'too_many'} end
local has_backing = false
for _, record in ipairs(call('HVALS', KEYS.users)) do
  local is_inviter = string.sub(record, 1, #ARGV.inviter) == ARGV.inviter
  if is_inviter and string.find(record, '"role":"owner"', 1, true) then has_backing = true end
end
if not has_backing then return {'missing'} end
local till = now_ms + tonumber(ARGV.life)

call('HDEL', KEYS.invitations, ARGV.email)
call('HSET', KEYS.users, ARGV.email, ARGV.user)
call('HSET', KEYS.sessions, ARGV.session_id, format('%d %d %s', now_ms, till, ARGV.session),
  format('seen:%s', ARGV.session_id), now)
call('PEXPIREAT', KEYS.sessions, format('%d', till))
call('HSET', KEYS.last_logins, ARGV.user_id, now)
recorded()
return {'joined', now, format('%d', till)}
