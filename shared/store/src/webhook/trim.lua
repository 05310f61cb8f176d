
-- Fragment: removes the oldest of the finished deliveries beyond `most`. The numbers are indexes of KEYS.
local TRIMMED_MAX = 1000 -- in one execution of a script

local function trim(deliveries, delivered, failed, most)
  local over = redis.call('ZCARD', KEYS[delivered]) + redis.call('ZCARD', KEYS[failed]) - tonumber(most)
  for _ = 1, math.min(over, TRIMMED_MAX) do
    local good = redis.call('ZRANGE', KEYS[delivered], 0, 0, 'WITHSCORES')
    local bad = redis.call('ZRANGE', KEYS[failed], 0, 0, 'WITHSCORES')
    if good[1] and (not bad[1] or tonumber(good[2]) <= tonumber(bad[2])) then
      redis.call('ZREM', KEYS[delivered], good[1])
      redis.call('HDEL', KEYS[deliveries], good[1])
    else
      redis.call('ZREM', KEYS[failed], bad[1])
      redis.call('HDEL', KEYS[deliveries], bad[1])
    end
  end
end
