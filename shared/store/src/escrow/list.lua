-- Purpose: list an escrow with the account of its payee, which is another than the payer's; before it is funded, and
--   after, also among the open ones of the payee's wallet. It may be repeated.
-- KEYS: as listing.rs names them, all of the payee's account. `open_escrows` are those of the payee's wallet
-- ARGV: as listing.rs names them. `is_open` is '1' when the escrow is about to hold money, or holds it; else ''
-- Returns: {'listed'} | {'no_account'}
-- Cost: O(log n) in the escrows of the account; 3 calls
if redis.call('EXISTS', KEYS.account) == 0 then return {'no_account'} end

redis.call('ZADD', KEYS.escrows, ARGV.number, ARGV.number)
if ARGV.is_open ~= '' then redis.call('SADD', KEYS.open_escrows, ARGV.number) end
return {'listed'}
