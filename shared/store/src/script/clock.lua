-- Fragment: the store's clock, the only clock that decides anything.
local clock = call('TIME')
local micros = clock[2] + 0
local now_ms = clock[1] * 1000 + (micros - micros % 1000) / 1000
