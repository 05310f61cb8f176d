-- Purpose: put a user's changed record in the place of the old one, or remove the user; sessions end with it, and API keys that
--   the user made.
-- KEYS: 1 account record  2 live audit log  3 users  4 sessions of the user  5 last logins  6 reset of the user  7 and on: API
--   keys of the account
-- ARGV: 1 mode ('live')  2 audit entry  3 e-mail  4 old record  5 new record ('' = remove the user)  6 '1' when another owner
--   must be left  7 which sessions end: '' none, 'all', or all but this one  8 user id
-- Returns: {'done'} | {'changed'} (it is no longer the old record) | {'last_owner'} | {'no_account'}
-- Cost: O(users of the account) when another owner must be left, else O(sessions of the user); at most 26 calls, and 2 an API
--   key
if redis.call('HGET', KEYS[3], ARGV[3]) ~= ARGV[4] then return {'changed'} end
if ARGV[6] == '1' then
  local owners = 0
  for _, record in ipairs(redis.call('HVALS', KEYS[3])) do
    if string.find(record, '"role":"owner"', 1, true) and record ~= ARGV[4] then owners = owners + 1 end
  end
  if owners == 0 then return {'last_owner'} end
end
local fields = ARGV[7] ~= '' and redis.call('HKEYS', KEYS[4]) or {}
local seen = string.format('seen:%s', ARGV[7])

for _, field in ipairs(fields) do
  if field ~= ARGV[7] and field ~= seen then redis.call('HDEL', KEYS[4], field) end
end
if ARGV[5] == '' then
  redis.call('HDEL', KEYS[3], ARGV[3])
  redis.call('HDEL', KEYS[5], ARGV[8])
else
  redis.call('HSET', KEYS[3], ARGV[3], ARGV[5])
end
if ARGV[7] ~= '' then redis.call('DEL', KEYS[6]) end
for at = 7, #KEYS do
  if redis.call('HGET', KEYS[at], 'created_by') == ARGV[8] then redis.call('HSETNX', KEYS[at], 'revoked_at', now) end
end
recorded()
return {'done'}
