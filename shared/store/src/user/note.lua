-- Purpose: write down what somebody tried as a user, which changed nothing.
-- KEYS: 1 account record  2 live audit log
-- ARGV: 1 mode ('live')  2 audit entry
-- Returns: {'noted'} | {'no_account'}
-- Cost: O(1); 5 calls
recorded()
return {'noted'}
