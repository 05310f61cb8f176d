-- Fragment: writes the audit line of a denial, for `authorize`. Needs clock.lua. Statements and no function, since
-- making one costs 1,500 instructions.
-- Uses the keys and arguments of `authorize`, and these locals:
--   reason_text: the reason
--   checks_text: the state that the checks saw, one group for each
local seq = call('HINCRBY', KEYS.account, 'live_audit_seq', '1')
local estimate_text = ARGV.estimate == '' and '-' or ARGV.estimate
call('RPUSH', KEYS.audit_log, format('%d %d D ', seq, now_ms) .. reason_text .. ' ' .. ARGV.allow_id .. ' '
  .. estimate_text .. ' ' .. checks_text .. ' ' .. ARGV.memo)
