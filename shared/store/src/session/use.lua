-- Purpose: find out whether a session is open, whose it is and what that user may do now; note that it was seen.
-- KEYS: 1 account record  2 sessions of the user  3 users
-- ARGV: 1 session id  2 hash of its token  3 longest pause in ms  4 pause between two notes in ms
-- Returns: {} when it is not open | {session, last seen, record of the user, and of the account: name, plan, created_at,
--   generation, version}
-- Cost: O(1); at most 5 calls
local field = string.format('seen:%s', ARGV[1])
local found = redis.call('HMGET', KEYS[2], ARGV[1], field)
if not found[1] or not found[2] then return {} end
local ends, hash, email = string.match(found[1], '^%d+ (%d+) (%x+) %S+ (%S+)')
local seen = tonumber(found[2])
if hash ~= ARGV[2] or tonumber(ends) <= now_ms or seen + tonumber(ARGV[3]) <= now_ms then return {} end
local user = redis.call('HGET', KEYS[3], email)
local account = redis.call('HMGET', KEYS[1], 'name', 'plan', 'created_at', 'generation', 'version')
if not user or not account[4] then return {} end

if seen + tonumber(ARGV[4]) <= now_ms then redis.call('HSET', KEYS[2], field, string.format('%d', now_ms)) end
return {found[1], found[2], user, unpack(account)}
