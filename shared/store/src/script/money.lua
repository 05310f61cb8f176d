-- Fragment: wallets and their transactions. Needs change.lua and kept_text.lua, and the key `transactions`, all of the
-- mode.
-- A leg is four keys in a row: the wallet, and the lists of transactions of its type, of its owner, and of both.
local BALANCE_USD_MAX, NANOS = 9000000000, 1000000000 -- balances are int64
-- The length of a line that the common size of a transaction stands for. What is beyond it is kept text. Equals
-- LONG_TRANSACTION in transaction.rs.
local LONG_TRANSACTION = 256

-- Returns whether a wallet can hold all three amounts, exactly: as one number they would be rounded beyond 2^53.
local function can_hold(balance, pending, amount)
  local usd, nanos = 0, 0
  for _, text in ipairs({balance, pending, amount}) do
    usd = usd + tonumber(string.match(text, '^(%d+)%d%d%d%d%d%d%d%d%d$') or '0')
    nanos = nanos + tonumber(string.sub(text, -9))
  end
  usd = usd + math.floor(nanos / NANOS)
  return usd < BALANCE_USD_MAX or usd == BALANCE_USD_MAX and nanos % NANOS == 0
end

-- Returns whether the wallet KEYS[leg] has room for `amount`.
local function has_room(leg, amount)
  return can_hold(call('HGET', KEYS[leg], 'balance'), '0', amount)
end

-- Moves the signed decimal `amount` and writes the transaction; the wallet's time of change is now. The line of a
-- transaction is '<at ms> <balance after> <amount> <wallet number> <words>', with the words of
-- shared/store/src/transaction.rs. `arrived`: the text is of another account, which has counted it.
local function post(leg, amount, words, arrived)
  call('HINCRBY', KEYS[leg], 'balance', amount)
  call('HSET', KEYS[leg], 'updated_at', now)
  -- Read as text: a number would lose digits beyond 2^53.
  local wallet = call('HMGET', KEYS[leg], 'balance', 'wallet_number')
  local number = call('HINCRBY', KEYS.account, format('%s_txn_seq', ARGV.mode), 1)
  local line = format('%d %s %s %s %s', now_ms, wallet[1], amount, wallet[2], words)
  call('HSET', KEYS.transactions, number, line)
  if not arrived then count_kept_text(math.max(#line - LONG_TRANSACTION, 0)) end
  call('RPUSH', KEYS[leg + 1], number)
  call('RPUSH', KEYS[leg + 2], number)
  call('RPUSH', KEYS[leg + 3], number)
  return wallet[1]
end

