-- Purpose: list an escrow with the account of its payee, which is another than the payer's. It may be repeated.
-- KEYS: as listing.rs names them, all of the payee's account
-- ARGV: as listing.rs names them
-- Returns: {'listed'} | {'no_account'}
-- Cost: O(log n) in the escrows of the account; 2 calls
if call('EXISTS', KEYS.account) == 0 then return {'no_account'} end

call('ZADD', KEYS.escrows, ARGV.number, ARGV.number)
return {'listed'}
