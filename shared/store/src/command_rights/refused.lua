-- Purpose: list the commands that the server refuses to the user of this connection
-- KEYS: none
-- ARGV: key: one that the user may change; then the names of the commands
-- Returns: those that are refused, each after a space
-- Cost: O(commands), a constant of the program
local key_text, refused_text = ARGV.key, ''
for at = @ARGV.commands, #ARGV do
  local name_text = ARGV[at]
  -- Any word of a command may be a key, so all are. Redis 7.0 crashes at a check of SET without a word behind it.
  if not redis.acl_check_cmd(name_text, key_text, key_text, key_text) then
    refused_text = refused_text .. ' ' .. name_text
  end
end
return refused_text
