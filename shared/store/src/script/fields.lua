-- Fragment: compares, sets and clears fields of the hash KEYS[hash]. The arguments from number `first` to `last` come
-- in threes: 'set' field value, or 'clear' field ''.

-- Returns whether all fields have these values already: then nothing is to be changed, and no entry is made of it.
local function has_fields(hash, first, last)
  for at = first, last, 3 do
    if call('HGET', KEYS[hash], ARGV[at + 1]) ~= (ARGV[at] == 'set' and ARGV[at + 2]) then return false end
  end
  return true
end

local function change_fields(hash, first, last)
  for at = first, last, 3 do
    if ARGV[at] == 'set' then
      call('HSET', KEYS[hash], ARGV[at + 1], ARGV[at + 2])
    else
      call('HDEL', KEYS[hash], ARGV[at + 1])
    end
  end
end

