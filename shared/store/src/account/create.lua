-- Purpose: create an account, together with its owner when there is one.
-- KEYS: 1 account record  2 live audit log  3 users of the account
-- ARGV: 1 account id  2 audit entry  3 name  4 plan  5 owner's e-mail ('' = no owner)  6 owner's record (JSON)
-- Returns: {'created'} | {'exists'}
-- Cost: O(1); 4 or 5 calls
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
if redis.call('EXISTS', KEYS[1]) == 1 then return {'exists'} end

redis.call('HSET', KEYS[1], 'id', ARGV[1], 'name', ARGV[3], 'plan', ARGV[4], 'created_at',
  string.format('%d', now_ms), 'generation', '1', 'version', '1', 'live_audit_seq', '1')
if ARGV[5] ~= '' then redis.call('HSET', KEYS[3], ARGV[5], ARGV[6]) end
redis.call('RPUSH', KEYS[2], string.format('1 %d %s', now_ms, ARGV[2]))
return {'created'}
