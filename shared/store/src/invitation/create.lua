-- Purpose: invite a user to an account by e-mail. Expired invitations are removed.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `invitation` is its record after its times (JSON); `life` is in ms
-- Returns: {'created', created, end} | {'member'} | {'exists'} | {'too_many'} | {'no_account'}
-- Cost: O(invitations of the account); at most 109 calls
local all = call('HGETALL', KEYS.invitations)
local ended, open = {}, 0
for at = 1, #all, 2 do
  local ends = tonumber(string.match(all[at + 1], '^%d+ (%d+) '))
  if ends > now_ms then
    if all[at] == ARGV.email then return {'exists'} end
    open = open + 1
  else
    table.insert(ended, all[at])
  end
end
if call('HEXISTS', KEYS.users, ARGV.email) == 1 then return {'member'} end
if open >= tonumber(ARGV.invitations_max) then return {'too_many'} end
local till = now_ms + tonumber(ARGV.life)

for _, email in ipairs(ended) do call('HDEL', KEYS.invitations, email) end
call('HSET', KEYS.invitations, ARGV.email, format('%d %d %s', now_ms, till, ARGV.invitation))
-- Another one may have been made while the store's clock was ahead, and ends later.
if call('PEXPIRETIME', KEYS.invitations) < till then
  call('PEXPIREAT', KEYS.invitations, format('%d', till))
end
recorded()
return {'created', now, format('%d', till)}
