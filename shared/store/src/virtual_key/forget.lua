-- Purpose: forget revoked virtual keys of an agent that is about to be deleted, so that the script that deletes it has few.
-- KEYS: 1 active virtual keys  2 the agent's virtual keys  3 and on: records of virtual keys
-- ARGV: 1 and on: the ids of these keys
-- Returns: 'forgotten'; active keys, and those of other agents, stay
-- Cost: O(keys given · log keys of the account); 3 calls a key
for at, id in ipairs(ARGV) do
  if not redis.call('ZSCORE', KEYS[1], id) and redis.call('ZREM', KEYS[2], id) == 1 then
    redis.call('DEL', KEYS[2 + at])
  end
end
return 'forgotten'
