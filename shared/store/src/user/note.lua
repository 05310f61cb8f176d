-- Purpose: write down what somebody tried as a user, which changed nothing.
-- KEYS: of a change
-- ARGV: of a change
-- Returns: {'noted'} | {'no_account'}
-- Cost: O(1); 5 calls
recorded()
return {'noted'}
