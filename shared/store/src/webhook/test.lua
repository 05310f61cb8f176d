-- Purpose: make the event by which the owner of a webhook tries it out.
-- KEYS: 1 account record  2 audit log  3 webhook
-- ARGV: 1 mode  2 audit entry
-- Returns: {'recorded', number of the entry} | {'missing'} | {'disabled'} | {'no_account'}
-- Cost: O(1); 7 calls
local status = redis.call('HGET', KEYS[3], 'status')
if not status then return {'missing'} end
if status ~= 'active' then return {'disabled'} end
recorded()
return {'recorded', redis.call('HGET', KEYS[1], string.format('%s_audit_seq', ARGV[1]))}
