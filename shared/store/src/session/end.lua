-- Purpose: end one session of a user, or all but one.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `which` is 'one' (the session ends) or 'others' (all but it end)
-- Returns: {'ended', token hash of each ended session …} | {'missing'} (nothing to end) | {'no_account'}
-- Cost: O(sessions of the user); at most 46 calls
local seen = format('seen:%s', ARGV.session_id)
local fields, ending, words = call('HGETALL', KEYS.sessions), {}, {'ended'}
for at = 1, #fields, 2 do
  local this = fields[at] == ARGV.session_id or fields[at] == seen
  if this == (ARGV.which == 'one') then
    table.insert(ending, fields[at])
    table.insert(words, string.match(fields[at + 1], '^%d+ %d+ (%x+) '))
  end
end
if #ending == 0 then return {'missing'} end

for _, field in ipairs(ending) do call('HDEL', KEYS.sessions, field) end
recorded()
return words
