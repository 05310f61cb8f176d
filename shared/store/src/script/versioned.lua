-- Fragment: around every change of an account. It refuses an account of which the caller has seen more than is there: the
-- store lost writes (decision D47). And each answer ends with how far the account has come.
-- Takes the last two of ARGV away: generation and version that the caller has seen ('0' = none).
-- Returns: the words of the change, or {'lost'} (nothing happened), and behind them generation and version, '0' without an account.
local floor_version = tonumber(table.remove(ARGV))
local floor_generation = tonumber(table.remove(ARGV))
-- Kept up to date by whoever writes one of the two.
local account_view = redis.call('HMGET', KEYS.account, 'generation', 'version')

local function change()
--@ change
end

local generation, version = tonumber(account_view[1] or '0'), tonumber(account_view[2] or '0')
local lost = generation < floor_generation or generation == floor_generation and version < floor_version
local words = lost and {'lost'} or change()
table.insert(words, account_view[1] or '0')
table.insert(words, account_view[2] or '0')
return words
