-- Fragment: number of transactions of the mode that the account caused, without those that arrived from other accounts.
-- Needs budget.lua, and the key `transactions`.
local function caused() return call('HLEN', KEYS.transactions) - counted('txn_in') end

