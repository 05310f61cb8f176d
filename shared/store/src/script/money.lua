-- Fragment: wallets and their transactions. Needs change.lua, and the key `transactions`, all of the mode.
-- A leg is four keys in a row: the wallet, and the lists of transactions of its type, its owner, and both.
local CEILING = 9e18 -- balances are int64

-- Whether the wallet KEYS[leg] can take `amount` more.
local function has_room(leg, amount)
  return tonumber(redis.call('HGET', KEYS[leg], 'balance') or '0') + tonumber(amount) <= CEILING
end

-- Moves the signed decimal `amount` and writes the transaction; the wallet changed now. The line of a transaction is
-- '<at ms> <balance after> <amount> <wallet number> <words>', the words being those of shared/store/src/transaction.rs.
local function post(leg, amount, words)
  redis.call('HINCRBY', KEYS[leg], 'balance', amount)
  redis.call('HSET', KEYS[leg], 'updated_at', now)
  -- Read as text: as a number it would lose digits beyond 2^53.
  local wallet = redis.call('HMGET', KEYS[leg], 'balance', 'wallet_number')
  local number = redis.call('HINCRBY', KEYS.account, string.format('%s_txn_seq', ARGV.mode), 1)
  redis.call('HSET', KEYS.transactions, number, string.format('%d %s %s %s %s', now_ms, wallet[1], amount, wallet[2], words))
  redis.call('RPUSH', KEYS[leg + 1], number)
  redis.call('RPUSH', KEYS[leg + 2], number)
  redis.call('RPUSH', KEYS[leg + 3], number)
  return wallet[1]
end

