-- Fragment: transactions of the mode that the account caused: what arrived from another account is not its doing. Needs
--   budget.lua, and the key `transactions`.
local function caused() return redis.call('HLEN', KEYS.transactions) - counted('txn_in') end

