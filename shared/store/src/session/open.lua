-- Purpose: open a session for a user whose record is as the caller read it; the record can change with it (a new
--   password, a code that is used up), and other sessions can end. Beyond the most sessions of a user the oldest one
--   ends. One that was opened while the store's clock was ahead is none (use.lua), and ends.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `old` and `new` are records of the user, equal if nothing changes.
--   `ending` is 'all' if the other sessions end, or ''; `reset_hash` the hash of the used reset token, or ''; `session`
--   the session's record after its times; `life` is in ms; `is_login` is '1' or ''
-- Returns: {'opened', created, end, token hash of each ended session …} | {'changed'} (the record is not the old one) |
--   {'used'} (the reset token is no longer valid) | {'no_account'}
-- Cost: O(sessions of the user); at most 34 calls
if call('HGET', KEYS.users, ARGV.email) ~= ARGV.old then return {'changed'} end
if ARGV.reset_hash ~= '' and call('GET', KEYS.reset) ~= ARGV.reset_hash then return {'used'} end
local MINUTE = 60000
local fields = call('HGETALL', KEYS.sessions)
local open, ending, hashes = {}, {}, {}
for at = 1, #fields, 2 do
  local created, ends, hash = string.match(fields[at + 1], '^(%d+) (%d+) (%x+) ')
  if created then hashes[fields[at]] = hash end
  local is_open = created and tonumber(ends) > now_ms and tonumber(created) <= now_ms + MINUTE
  if is_open and ARGV.ending ~= 'all' then
    table.insert(open, {tonumber(created), fields[at]})
  elseif created then
    table.insert(ending, fields[at])
  end
end
table.sort(open, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
for at = 1, #open - tonumber(ARGV.sessions_max) + 1 do table.insert(ending, open[at][2]) end
local till = now_ms + tonumber(ARGV.life)

local words = {'opened', now, format('%d', till)}
for _, id in ipairs(ending) do
  call('HDEL', KEYS.sessions, id, format('seen:%s', id))
  table.insert(words, hashes[id])
end
if ARGV.new ~= ARGV.old then call('HSET', KEYS.users, ARGV.email, ARGV.new) end
if ARGV.ending == 'all' or ARGV.reset_hash ~= '' then call('DEL', KEYS.reset) end
call('HSET', KEYS.sessions, ARGV.session_id, format('%d %d %s', now_ms, till, ARGV.session),
  format('seen:%s', ARGV.session_id), now)
if call('PEXPIRETIME', KEYS.sessions) < till then call('PEXPIREAT', KEYS.sessions, words[3]) end
if ARGV.is_login == '1' then call('HSET', KEYS.last_logins, ARGV.user_id, now) end
recorded()
return words
