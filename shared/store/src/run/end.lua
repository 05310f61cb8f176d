-- Purpose: end a run (decision D38): store its status, and write its totals to the audit log. Its spend stays; its next
--   approved call resumes it.
-- KEYS: of a change, then as end.rs names them
-- ARGV: of a change, then as end.rs names them. `status` is 'completed' or 'failed'
-- Returns: {'done'} | {'missing'} (no such run) | {'already'} (it had ended with this status) | {'otherwise'} (it had
--   ended with the other status)
--   | {'no_account'}; only the first writes anything
-- Cost: O(1); 7 calls
local run = call('HMGET', KEYS.run, 'first', 'status', 'calls', 'denied', 'spent')
if not run[1] then return {'missing'} end
if run[2] then return {run[2] == ARGV.status and 'already' or 'otherwise'} end

call('HSET', KEYS.run, 'status', ARGV.status, 'ended', now)
recorded(format('calls=%s denied=%s spent_nanos=%s', run[3] or '0', run[4] or '0', run[5] or '0'))
return {'done'}
