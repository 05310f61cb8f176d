-- Fragment: sets and clears fields of the hash KEYS[hash]. The arguments from number `first` on come in threes: 'set'
-- field value, or 'clear' field ''.
local function change_fields(hash, first)
  for at = first, #ARGV, 3 do
    if ARGV[at] == 'set' then
      redis.call('HSET', KEYS[hash], ARGV[at + 1], ARGV[at + 2])
    else
      redis.call('HDEL', KEYS[hash], ARGV[at + 1])
    end
  end
end

