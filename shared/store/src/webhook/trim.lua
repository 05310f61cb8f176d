
-- Fragment: removes the oldest of the finished deliveries beyond `most`. The numbers are indexes of KEYS.
local TRIMMED_MAX = 1000 -- in one execution of a script

local function trim(deliveries, delivered, failed, most)
  local over = call('ZCARD', KEYS[delivered]) + call('ZCARD', KEYS[failed]) - tonumber(most)
  for _ = 1, math.min(over, TRIMMED_MAX) do
    local good = call('ZRANGE', KEYS[delivered], 0, 0, 'WITHSCORES')
    local bad = call('ZRANGE', KEYS[failed], 0, 0, 'WITHSCORES')
    if good[1] and (not bad[1] or tonumber(good[2]) <= tonumber(bad[2])) then
      call('ZREM', KEYS[delivered], good[1])
      call('HDEL', KEYS[deliveries], good[1])
    else
      call('ZREM', KEYS[failed], bad[1])
      call('HDEL', KEYS[deliveries], bad[1])
    end
  end
end
