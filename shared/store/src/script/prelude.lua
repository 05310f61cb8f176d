-- Fragment: at the start of every script. Locals are faster than fields of globals.
local call, format = redis.call, string.format
