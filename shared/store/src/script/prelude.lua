-- Fragment: at the start of every script. Locals are faster than globals and fields of globals.
local call, format, KEYS, ARGV = redis.call, string.format, KEYS, ARGV
