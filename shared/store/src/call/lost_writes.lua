-- Fragment: checks whether a missing hold is conclusive. Needs clock.lua.
-- Uses KEYS.account.

-- Returns whether the account does not exist, or is older than `generation_text` and `version_text`, which were seen
-- before. Then the store is another ledger or lost writes, and may lack the change that opened the hold.
local function lost_writes(generation_text, version_text)
  local account = call('HMGET', KEYS.account, 'generation', 'version')
  if not account[1] then return true end
  local generations_ahead = account[1] - generation_text
  return generations_ahead < 0 or generations_ahead == 0 and account[2] - version_text < 0
end
