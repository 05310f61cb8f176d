-- Fragment: the common end of every change of an account: increments its version and appends to its audit log. Needs
-- clock.lua, and is wrapped in versioned.lua.
-- Uses the inputs that Scope::execute sends first: KEYS.account, KEYS.audit_log of the mode, ARGV.mode, ARGV.entry.
local now = format('%d', now_ms)
if not account_view[1] then return {'no_account'} end
-- A change increments the version by CHANGE_STEP, and a call of an agent by 1: so calls cannot make up for a change
-- that was lost in a failover, and the loss stays detectable. Beyond STEPS_END a change also counts 1, so that versions
-- stay exact as doubles.
local CHANGE_STEP, STEPS_END = 1048576, 2 ^ 52
-- The length of a line that the budget of audit entries stands for. What is beyond it counts against the budget of
-- audit text (decision D71) until the line is archived. Equals LONG_LINE in audit.rs.
local LONG_LINE = 1024

-- `words`, name=value, contain what only the script knows about the change; they are appended to the entry. `arrived`:
-- the text is of another account, which has counted it.
local function recorded(words, arrived)
  local step = tonumber(account_view[2]) < STEPS_END and CHANGE_STEP or 1
  account_view[2] = format('%d', call('HINCRBY', KEYS.account, 'version', step))
  local seq = call('HINCRBY', KEYS.account, format('%s_audit_seq', ARGV.mode), 1)
  local line = format('%d %d %s', seq, now_ms, ARGV.entry)
  line = words and format('%s %s', line, words) or line
  call('RPUSH', KEYS.audit_log, line)
  if #line > LONG_LINE and not arrived then
    call('HINCRBY', KEYS.account, format('%s_audit_text', ARGV.mode), #line - LONG_LINE)
  end
end

