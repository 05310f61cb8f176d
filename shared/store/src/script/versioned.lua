-- Fragment: around every change of an account. It refuses an account of which the caller has seen more than is there:
-- the store lost writes (decision D47). It refuses a caller who may not make the change any more. And each answer ends
-- with how far the account has come.
-- Takes the last three of ARGV away: generation and version that the caller has seen ('0' = none), and on whose
-- authority the change is made: '' (nobody's that can be taken away) | 'key' | 'session', each as authority.rs writes
-- it. Takes the last of KEYS away: of a key its record, of a session the user's sessions and the account's users.
-- Returns: the words of the change, or {'lost'}, {'no_key'}, {'no_session'} or {'no_role'} (nothing happened), and
-- behind them generation and version, '0' without an account.
-- Cost: O(1); 1 call, and on authority of a key 1 or of a session 2 more, which the cost of a change leaves out
local authority = table.remove(ARGV)
local floor_version = tonumber(table.remove(ARGV))
local floor_generation = tonumber(table.remove(ARGV))
-- Kept up to date by whoever writes one of the two.
local account_view = redis.call('HMGET', KEYS.account, 'generation', 'version')

local function change()
--@ change
end

-- What the caller lacks by now; nothing when the change may be made.
local function lacking()
  if authority == '' then return end
  if authority == 'key' then
    local key = redis.call('HMGET', KEYS[#KEYS], 'id', 'revoked_at')
    table.remove(KEYS)
    return (not key[1] or key[2]) and 'no_key'
  end
  local session, email, start, roles = string.match(authority, '^session (%S+) (%S+) (%S+) (%S+)$')
  local user = redis.call('HGET', KEYS[#KEYS], email)
  table.remove(KEYS)
  local open = redis.call('HEXISTS', KEYS[#KEYS], session) == 1
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
