-- Purpose: add a user to the look-up of an e-mail address, which has at most one user of each account. A full look-up
--   does not change. It is written in any case, so that a caller who waits for durability waits for this write.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them. `accounts_max` is the maximum number of accounts in a look-up
-- Returns: {'done'}
-- Cost: O(accounts in it), at most `accounts_max`; 2 calls
local account_text, user_text = ARGV.account, ARGV.user
local most = tonumber(ARGV.accounts_max)
local named_text = call('GET', KEYS.lookup) or ''
local line_text = account_text .. ' ' .. user_text
local lines_text = '\n' .. named_text .. '\n'
local from = string.find(lines_text, '\n' .. account_text .. ' ', 1, true)

if from then
  local before_text = string.sub(lines_text, 2, from)
  local after_text = string.sub(lines_text, string.find(lines_text, '\n', from + 1, true), -2)
  named_text = before_text .. line_text .. after_text
elseif named_text == '' then
  named_text = line_text
else
  local _, breaks = string.gsub(named_text, '\n', '\n')
  if breaks + 1 < most then
    named_text = named_text .. '\n' .. line_text
  end
end
call('SET', KEYS.lookup, named_text)
return {'done'}
