-- Fragment: the store's clock, and what every change of an account ends with: its version rises, its audit log grows.
-- Takes KEYS[1] account record, KEYS[2] audit log of the mode, ARGV[1] mode, ARGV[2] audit entry.
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local now = string.format('%d', now_ms)
if redis.call('HEXISTS', KEYS[1], 'generation') == 0 then return {'no_account'} end

local function recorded()
  redis.call('HINCRBY', KEYS[1], 'version', 1)
  local seq = redis.call('HINCRBY', KEYS[1], string.format('%s_audit_seq', ARGV[1]), 1)
  redis.call('RPUSH', KEYS[2], string.format('%d %d %s', seq, now_ms, ARGV[2]))
end

