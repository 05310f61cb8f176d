-- Fragment: what every change of an account ends with: its version rises, its audit log grows. Needs clock.lua, and
-- versioned.lua is put around it.
-- Takes what Scope::execute sends first: KEYS.account, KEYS.audit_log of the mode, ARGV.mode, ARGV.entry.
local now = string.format('%d', now_ms)
if not account_view[1] then return {'no_account'} end
-- A change raises the version by CHANGE_STEP, and a call of an agent by 1: calls do not make up for a change that a
-- failover took back, so its loss stays noticeable. Beyond STEPS_END a change counts 1 as well, so that versions stay
-- exact as doubles.
local CHANGE_STEP, STEPS_END = 1048576, 2 ^ 52

-- `words`, name=value, is what only the script knows of what happened; it follows the entry.
local function recorded(words)
  local step = tonumber(account_view[2]) < STEPS_END and CHANGE_STEP or 1
  account_view[2] = string.format('%d', redis.call('HINCRBY', KEYS.account, 'version', step))
  local seq = redis.call('HINCRBY', KEYS.account, string.format('%s_audit_seq', ARGV.mode), 1)
  local line = string.format('%d %d %s', seq, now_ms, ARGV.entry)
  redis.call('RPUSH', KEYS.audit_log, words and string.format('%s %s', line, words) or line)
end

