-- Purpose: execute several reads of one bucket as one snapshot. Not a transaction: a server over its maxmemory refuses
--   everything in MULTI, also reads, but executes a script that does not write.
-- KEYS: for each read its key
-- ARGV: for each read its command, the number of its other words, and those words
-- Returns: for each read its reply
-- Cost: that of the reads, which the caller bounds; one call per read
local replies, at = {}, @ARGV.reads
for read = @KEYS.reads, #KEYS do
  local words = tonumber(ARGV[at + 1])
  replies[read] = call(ARGV[at], KEYS[read], unpack(ARGV, at + 2, at + 1 + words))
  at = at + 2 + words
end
return replies
