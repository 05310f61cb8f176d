-- Fragment: the store's clock, the only one that decides anything.
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)

