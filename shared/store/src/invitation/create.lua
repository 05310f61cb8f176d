-- Purpose: invite somebody to an account by e-mail; invitations that have ended make room.
-- KEYS: 1 account record  2 live audit log  3 users  4 invitations
-- ARGV: 1 mode ('live')  2 audit entry  3 e-mail  4 what the invitation is, behind its times (JSON)  5 life in ms
--   6 most open invitations
-- Returns: {'created', created, end} | {'member'} | {'exists'} | {'too_many'} | {'no_account'}
-- Cost: O(invitations of the account); at most 108 calls
local all = redis.call('HGETALL', KEYS[4])
local ended, open = {}, 0
for at = 1, #all, 2 do
  local ends = tonumber(string.match(all[at + 1], '^%d+ (%d+) '))
  if ends > now_ms then
    if all[at] == ARGV[3] then return {'exists'} end
    open = open + 1
  else
    table.insert(ended, all[at])
  end
end
if redis.call('HEXISTS', KEYS[3], ARGV[3]) == 1 then return {'member'} end
if open >= tonumber(ARGV[6]) then return {'too_many'} end
local till = now_ms + tonumber(ARGV[5])

for _, email in ipairs(ended) do redis.call('HDEL', KEYS[4], email) end
redis.call('HSET', KEYS[4], ARGV[3], string.format('%d %d %s', now_ms, till, ARGV[4]))
redis.call('PEXPIREAT', KEYS[4], string.format('%d', till))
recorded()
return {'created', now, string.format('%d', till)}
