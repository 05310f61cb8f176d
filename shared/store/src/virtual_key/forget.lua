-- Purpose: forget revoked virtual keys of an agent that is about to be deleted, so that the script that deletes it has
--   few.
-- KEYS: as script.rs names them. `active_keys` are those of the account
-- ARGV: as script.rs names them, all that it gets
-- Returns: 'forgotten'; active keys, and those of other agents, stay
-- Cost: O(keys given · log keys of the account); 3 calls a key
for at, id in ipairs(ARGV) do
  if not redis.call('ZSCORE', KEYS.active_keys, id) and redis.call('ZREM', KEYS.agent_keys, id) == 1 then
    redis.call('DEL', KEYS[@KEYS.agent_keys + at])
  end
end
return 'forgotten'
