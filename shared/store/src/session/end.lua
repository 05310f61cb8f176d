-- Purpose: end a session of a user, or all but one.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `which` is 'one' (the session ends) or 'others' (all but it end)
-- Returns: {'ended'} | {'missing'} (nothing to end) | {'no_account'}
-- Cost: O(sessions of the user); at most 46 calls
local seen = string.format('seen:%s', ARGV.session_id)
local ending = {}
for _, field in ipairs(redis.call('HKEYS', KEYS.sessions)) do
  local this = field == ARGV.session_id or field == seen
  if this == (ARGV.which == 'one') then table.insert(ending, field) end
end
if #ending == 0 then return {'missing'} end

for _, field in ipairs(ending) do redis.call('HDEL', KEYS.sessions, field) end
recorded()
return {'ended'}
