-- Purpose: end a session of a user, or all but one.
-- KEYS: 1 account record  2 live audit log  3 sessions of the user
-- ARGV: 1 mode ('live')  2 audit entry  3 session id  4 'one' = it ends, 'others' = all but it end
-- Returns: {'ended'} | {'missing'} (nothing to end) | {'no_account'}
-- Cost: O(sessions of the user); at most 46 calls
local seen = string.format('seen:%s', ARGV[3])
local ending = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
  local this = field == ARGV[3] or field == seen
  if this == (ARGV[4] == 'one') then table.insert(ending, field) end
end
if #ending == 0 then return {'missing'} end

for _, field in ipairs(ending) do redis.call('HDEL', KEYS[3], field) end
recorded()
return {'ended'}
