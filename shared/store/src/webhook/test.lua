-- Purpose: create the event with which the owner of a webhook tests it.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change
-- Returns: {'recorded', number of the entry} | {'missing'} | {'disabled'} | {'no_account'}
-- Cost: O(1); 7 calls
local status = call('HGET', KEYS.webhook, 'status')
if not status then return {'missing'} end
if status ~= 'active' then return {'disabled'} end
recorded()
return {'recorded', call('HGET', KEYS.account, format('%s_audit_seq', ARGV.mode))}
