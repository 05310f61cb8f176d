-- Purpose: remove a user from the look-up of an e-mail address. Another user of the account stays. The rest is written
--   in any case, so that a caller who waits for durability waits for this write.
-- KEYS: as script.rs names them
-- ARGV: as script.rs names them
-- Returns: {'done'}
-- Cost: O(accounts in it), bounded by join.lua; 2 calls
local account_text, user_text = ARGV.account, ARGV.user
local named_text = call('GET', KEYS.lookup) or ''
local lines_text = '\n' .. named_text .. '\n'
local line_text = '\n' .. account_text .. ' ' .. user_text .. '\n'
local from = string.find(lines_text, line_text, 1, true)

if from then
  local before_text = string.sub(lines_text, 1, from)
  local after_text = string.sub(lines_text, from + #line_text)
  named_text = before_text .. after_text
  named_text = string.sub(named_text, 2, -2)
end
if named_text == '' then
  call('DEL', KEYS.lookup)
else
  call('SET', KEYS.lookup, named_text)
end
return {'done'}
