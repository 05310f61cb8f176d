-- Fragment: whether the store can be believed when it has no such hold. Needs clock.lua.
-- Takes KEYS.account.

-- Whether the account is not here, or has not come as far as `generation_text` and `version_text`, which were seen
-- before: the store is another ledger then, or lost writes, and it may lack the change that opened the hold.
local function lacks_writes(generation_text, version_text)
  local account = call('HMGET', KEYS.account, 'generation', 'version')
  if not account[1] then return true end
  local generations = account[1] - generation_text
  return generations < 0 or generations == 0 and account[2] - version_text < 0
end
