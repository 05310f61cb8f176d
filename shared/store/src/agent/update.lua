-- Purpose: change fields of an agent's wallet row.
-- KEYS: 1 account record  2 audit log  3 agent
-- ARGV: 1 mode  2 audit entry  3 and on, in threes: 'set' field value, or 'clear' field ''
-- Returns: {'updated'} | {'missing'} (no wallet row) | {'no_account'}
-- Cost: O(fields); 7 calls and one a field
if redis.call('HEXISTS', KEYS[3], 'wallet') == 0 then return {'missing'} end

change_fields(3, 3)
redis.call('HSET', KEYS[3], 'updated_at', now)
recorded()
return {'updated'}
