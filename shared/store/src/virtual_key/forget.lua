-- Purpose: remove revoked virtual keys of an agent that is about to be deleted, so that the script that deletes it has
--   few keys to remove.
-- KEYS: as script.rs names them. `active_keys` are those of the account
-- ARGV: as script.rs names them; all of them are keys
-- Returns: 'forgotten'; active keys, and keys of other agents, stay
-- Cost: O(keys given · log keys of the account); 3 calls per key
for at, id in ipairs(ARGV) do
  if not call('ZSCORE', KEYS.active_keys, id) and call('ZREM', KEYS.agent_keys, id) == 1 then
    call('DEL', KEYS[@KEYS.agent_keys + at])
  end
end
return 'forgotten'
