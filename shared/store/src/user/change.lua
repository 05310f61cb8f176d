-- Purpose: replace a user's record by a changed one, or remove the user. Sessions and API keys of the user end with it.
-- KEYS: of a change, then as script.rs names them. `api_keys` are the account's keys that the user may have created
-- ARGV: of a change, then as script.rs names them. `old` and `new` are records of the user; an empty `new` removes it.
--   `needs_owner` is '1' if another owner must remain. `ending` selects the sessions to end: '' none, 'all', or all but
--   this one
-- Returns: {'done', number of the account's newest key, token hash of each ended session …} | {'changed'} (the record
--   is not the old one) | {'last_owner'} | {'no_account'}
-- Cost: O(users of the account) if another owner must remain, otherwise O(sessions of the user); at most 27 calls, and
--   2 per API key
if call('HGET', KEYS.users, ARGV.email) ~= ARGV.old then return {'changed'} end
if ARGV.needs_owner == '1' then
  local owners = 0
  for _, record in ipairs(call('HVALS', KEYS.users)) do
    if string.find(record, '"role":"owner"', 1, true) and record ~= ARGV.old then owners = owners + 1 end
  end
  if owners == 0 then return {'last_owner'} end
end
local fields = ARGV.ending ~= '' and call('HGETALL', KEYS.sessions) or {}
local seen, words = format('seen:%s', ARGV.ending), {'done', call('HGET', KEYS.account, 'key_seq') or '0'}

for at = 1, #fields, 2 do
  if fields[at] ~= ARGV.ending and fields[at] ~= seen then
    call('HDEL', KEYS.sessions, fields[at])
    table.insert(words, string.match(fields[at + 1], '^%d+ %d+ (%x+) '))
  end
end
if ARGV.new == '' then
  call('HDEL', KEYS.users, ARGV.email)
  call('HDEL', KEYS.last_logins, ARGV.user_id)
else
  call('HSET', KEYS.users, ARGV.email, ARGV.new)
end
if ARGV.ending ~= '' then call('DEL', KEYS.reset) end
for at = @KEYS.api_keys, #KEYS do
  if call('HGET', KEYS[at], 'created_by') == ARGV.user_id then call('HSETNX', KEYS[at], 'revoked_at', now) end
end
recorded()
return words
