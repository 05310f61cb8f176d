-- Purpose: list an escrow with the account of its payee, which is another than the payer's; before it is funded, and after, also
--   among the open ones of the payee's wallet. It may be repeated.
-- KEYS: 1 the payee's account record  2 the account's escrows  3 open escrows of the payee's wallet
-- ARGV: 1 number of the escrow  2 '1' when it is about to hold money, or holds it; else ''
-- Returns: {'listed'} | {'no_account'}
-- Cost: O(log n) in the escrows of the account; 3 calls
if redis.call('EXISTS', KEYS[1]) == 0 then return {'no_account'} end

redis.call('ZADD', KEYS[2], ARGV[1], ARGV[1])
if ARGV[2] ~= '' then redis.call('SADD', KEYS[3], ARGV[1]) end
return {'listed'}
