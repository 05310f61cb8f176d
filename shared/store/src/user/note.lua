-- Purpose: record a user's action that changed nothing.
-- KEYS: of a change
-- ARGV: of a change
-- Returns: {'noted'} | {'no_account'}
-- Cost: O(1); 5 calls
recorded()
return {'noted'}
