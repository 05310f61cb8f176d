-- Fragment: what the audit line of a debit says when the wallet fell below its threshold (decision D45). Needs
--   change.lua.
-- The threshold `low` is that of the policy that holds for the wallet ('' or nothing = none). It is an amount, so it is
-- below 2^53 and exact as a double; a balance above that is rounded, and never past it.

-- The threshold of a wallet: `own`, which an agent with a policy of its own has even when it is '', or the account-wide
-- one.
local function threshold_of(own)
  return own or redis.call('HGET', KEYS.account, string.format('%s_low', ARGV.mode))
end

-- The audit line of a debit from `before` to `after`; the owner of the wallet is the third word of `transaction`.
local function recorded_debit(low, before, after, transaction)
  local least = low and tonumber(low)
  if not least or tonumber(before) < least or tonumber(after) >= least then return recorded('outcome=settled') end
  local owner = string.match(transaction, '^%S+ %S+ (%S+)')
  recorded(string.format('outcome=settled low_nanos=%s balance_nanos=%s low_owner=%s', low, after, owner))
end

