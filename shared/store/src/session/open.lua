-- Purpose: open a session for a user as somebody has just seen them; the user's record can change with it (a new password, a
--   code that is used up), and other sessions can end. Beyond the most sessions of a user the oldest one ends.
-- KEYS: 1 account record  2 live audit log  3 users  4 sessions of the user  5 last logins  6 reset of the user
-- ARGV: 1 mode ('live')  2 audit entry  3 e-mail  4 old record  5 new record (the same when nothing changes)  6 user id
--   7 'all' when the other sessions end, or ''  8 hash of the reset token that is used up, or ''  9 session id  10 what the
--   session is, behind its times  11 life in ms  12 most sessions  13 '1' when it is a login
-- Returns: {'opened', created, end} | {'changed'} (it is no longer the old record) | {'used'} (the reset token no longer works)
--   | {'no_account'}
-- Cost: O(sessions of the user); at most 34 calls
if redis.call('HGET', KEYS[3], ARGV[3]) ~= ARGV[4] then return {'changed'} end
if ARGV[8] ~= '' and redis.call('GET', KEYS[6]) ~= ARGV[8] then return {'used'} end
local fields = redis.call('HGETALL', KEYS[4])
local open, ending = {}, {}
for at = 1, #fields, 2 do
  local created, ends = string.match(fields[at + 1], '^(%d+) (%d+) ')
  if created and ARGV[7] ~= 'all' and tonumber(ends) > now_ms then
    table.insert(open, {tonumber(created), fields[at]})
  elseif created then
    table.insert(ending, fields[at])
  end
end
table.sort(open, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
for at = 1, #open - tonumber(ARGV[12]) + 1 do table.insert(ending, open[at][2]) end
local till = now_ms + tonumber(ARGV[11])

for _, id in ipairs(ending) do redis.call('HDEL', KEYS[4], id, string.format('seen:%s', id)) end
if ARGV[5] ~= ARGV[4] then redis.call('HSET', KEYS[3], ARGV[3], ARGV[5]) end
if ARGV[7] == 'all' or ARGV[8] ~= '' then redis.call('DEL', KEYS[6]) end
local ends = string.format('%d', till)
redis.call('HSET', KEYS[4], ARGV[9], string.format('%d %d %s', now_ms, till, ARGV[10]),
  string.format('seen:%s', ARGV[9]), now)
if redis.call('PEXPIRETIME', KEYS[4]) < till then redis.call('PEXPIREAT', KEYS[4], ends) end
if ARGV[13] == '1' then redis.call('HSET', KEYS[5], ARGV[6], now) end
recorded()
return {'opened', now, ends}
