-- Purpose: make a user of somebody who was invited, and open the first session.
-- KEYS: 1 account record  2 live audit log  3 users  4 invitations  5 sessions of the user  6 last logins
-- ARGV: 1 mode ('live')  2 audit entry  3 e-mail  4 the invitation as it was seen  5 record of the user (JSON)  6 most users
--   7 user id  8 session id  9 what the session is, behind its times  10 life of the session in ms  11 how the record of who
--   invited begins (JSON)
-- Returns: {'joined', created, end} | {'missing'} (the invitation was used, revoked, or has ended, or who invited is no owner any
--   more) | {'exists'} | {'too_many'} | {'no_account'}
-- Cost: O(users of the account); 15 calls
if redis.call('HGET', KEYS[4], ARGV[3]) ~= ARGV[4] then return {'missing'} end
if tonumber(string.match(ARGV[4], '^%d+ (%d+) ')) <= now_ms then return {'missing'} end
if redis.call('HEXISTS', KEYS[3], ARGV[3]) == 1 then return {'exists'} end
if redis.call('HLEN', KEYS[3]) >= tonumber(ARGV[6]) then return {'too_many'} end
local has_backing = false
for _, record in ipairs(redis.call('HVALS', KEYS[3])) do
  local is_inviter = string.sub(record, 1, #ARGV[11]) == ARGV[11]
  if is_inviter and string.find(record, '"role":"owner"', 1, true) then has_backing = true end
end
if not has_backing then return {'missing'} end
local till = now_ms + tonumber(ARGV[10])

redis.call('HDEL', KEYS[4], ARGV[3])
redis.call('HSET', KEYS[3], ARGV[3], ARGV[5])
redis.call('HSET', KEYS[5], ARGV[8], string.format('%d %d %s', now_ms, till, ARGV[9]),
  string.format('seen:%s', ARGV[8]), now)
redis.call('PEXPIREAT', KEYS[5], string.format('%d', till))
redis.call('HSET', KEYS[6], ARGV[7], now)
recorded()
return {'joined', now, string.format('%d', till)}
