-- Purpose: check whether a session is open, read its user and the user's permissions, and record its use.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them. `idle` is the longest pause and `note_every` the pause between two records of use, in
--   ms
-- Returns: {} if it is not open | {session, last use, record of the user, and of the account: name, plan, created_at,
--   generation, version}
-- Cost: O(1); at most 5 calls
local MINUTE = 60000
local field = format('seen:%s', ARGV.session_id)
local found = call('HMGET', KEYS.sessions, ARGV.session_id, field)
if not found[1] or not found[2] then return {} end
local created, ends, hash, email = string.match(found[1], '^(%d+) (%d+) (%x+) %S+ (%S+)')
local seen = tonumber(found[2])
if hash ~= ARGV.token_hash or tonumber(ends) <= now_ms or seen + tonumber(ARGV.idle) <= now_ms then return {} end
-- Opened or seen while the store's clock was ahead: it would live that much longer.
if math.max(tonumber(created), seen) > now_ms + MINUTE then return {} end
local user = call('HGET', KEYS.users, email)
local account = call('HMGET', KEYS.account, 'name', 'plan', 'created_at', 'generation', 'version')
if not user or not account[4] then return {} end

if seen + tonumber(ARGV.note_every) <= now_ms then call('HSET', KEYS.sessions, field, format('%d', now_ms)) end
return {found[1], found[2], user, unpack(account)}
