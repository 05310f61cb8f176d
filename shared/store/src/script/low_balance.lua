-- Fragment: the addition to the audit line of a debit that took the wallet below its threshold (decision D45). Needs
-- change.lua.
-- The threshold `low` belongs to the policy that applies to the wallet ('' or nil = none). It is an amount, so it is
-- below 2^53 and exact as a double; a larger balance is rounded, but never past it.

-- Returns the threshold of a wallet: `own`, which an agent with its own policy has even if it is '', or the
-- account-wide one.
local function threshold_of(own)
  return own or call('HGET', KEYS.account, format('%s_low', ARGV.mode))
end

-- Writes the audit line of a debit from `before` to `after`. The third word of `transaction` is the owner of the
-- wallet.
local function recorded_debit(low, before, after, transaction)
  local least = low and tonumber(low)
  if not least or tonumber(before) < least or tonumber(after) >= least then return recorded('outcome=settled') end
  local owner = string.match(transaction, '^%S+ %S+ (%S+)')
  recorded(format('outcome=settled low_nanos=%s balance_nanos=%s low_owner=%s', low, after, owner))
end

