-- Fragment: the wrapper of every change of an account. Refuses an account if the caller has seen a newer version: the
-- store lost writes (decision D47). Refuses a caller whose authority was revoked. Appends the account's version to each
-- reply.
-- Removes the last three of ARGV: generation and version that the caller has seen ('0' = none), and the authority for
-- the change: '' (none that can be revoked) | 'key' | 'session', each in the form of authority.rs. Removes the last of
-- KEYS: for a key its record, for a session the user's sessions and the account's users.
-- Returns: the words of the change, or {'lost'}, {'no_key'}, {'no_session'} or {'no_role'} (nothing changed), followed
--   by generation and version, '0' without an account.
-- Cost: O(1); 1 call, with the authority of a key 1 or of a session 2 more, and with a long audit line 1 more, which
--   the cost of a change does not include
local authority = table.remove(ARGV)
local floor_version = tonumber(table.remove(ARGV))
local floor_generation = tonumber(table.remove(ARGV))
-- Updated by every change of one of the two.
local account_view = call('HMGET', KEYS.account, 'generation', 'version')

local function change()
--@ change
end

-- Returns the missing authority; nil if the change may be made.
local function lacking()
  if authority == '' then return end
  if authority == 'key' then
    local key = call('HMGET', KEYS[#KEYS], 'id', 'revoked_at')
    table.remove(KEYS)
    return (not key[1] or key[2]) and 'no_key'
  end
  local session, email, start, roles = string.match(authority, '^session (%S+) (%S+) (%S+) (%S+)$')
  local user = call('HGET', KEYS[#KEYS], email)
  table.remove(KEYS)
  local open = call('HEXISTS', KEYS[#KEYS], session) == 1
  table.remove(KEYS)
  if not open or not user or string.find(user, start, 1, true) ~= 1 then return 'no_session' end
  return not string.find(roles, string.match(user, '"role":"(%l+)"'), 1, true) and 'no_role'
end

local generation, version = tonumber(account_view[1] or '0'), tonumber(account_view[2] or '0')
local lost = generation < floor_generation or generation == floor_generation and version < floor_version
local lack = lost and 'lost' or lacking()
local words = lack and {lack} or change()
table.insert(words, account_view[1] or '0')
table.insert(words, account_view[2] or '0')
return words
