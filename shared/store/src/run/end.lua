-- Purpose: end a run (decision D38): note how, and tell the audit log what it came to. What it spent stays; its next
--   approved call lets it run again.
-- KEYS: 1 account record  2 audit log  3 run
-- ARGV: 1 mode  2 audit entry  3 'completed' | 'failed'
-- Returns: {'done'} | {'missing'} (no such run) | {'already'} (it ended so before) | {'otherwise'} (it ended in the other way)
--   | {'no_account'}; only the first writes anything
-- Cost: O(1); 7 calls
local run = redis.call('HMGET', KEYS[3], 'first', 'status', 'calls', 'denied', 'spent')
if not run[1] then return {'missing'} end
if run[2] then return {run[2] == ARGV[3] and 'already' or 'otherwise'} end

redis.call('HSET', KEYS[3], 'status', ARGV[3], 'ended', now)
recorded(string.format('calls=%s denied=%s spent_nanos=%s', run[3] or '0', run[4] or '0', run[5] or '0'))
return {'done'}
