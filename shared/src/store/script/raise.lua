-- Fragment: adds to three integer fields of the hash KEYS[hash], whose values were read before, and sets the text
--   of a fourth. A double is exact for integers below 2^53 only: where the caller says that all values and
--   sums are, they are written in one call (one entry of the append-only file, too); else the store itself adds.
local EXACT = 2 ^ 53
local function raise(hash, exact, a, a_old, a_by, b, b_old, b_by, c, c_old, c_by, name, text)
  if exact then
    redis.call('HSET', KEYS[hash], a, string.format('%d', a_old + a_by), b, string.format('%d', b_old + b_by), c,
      string.format('%d', c_old + c_by), name, text)
    return
  end
  redis.call('HINCRBY', KEYS[hash], a, string.format('%d', a_by))
  redis.call('HINCRBY', KEYS[hash], b, string.format('%d', b_by))
  redis.call('HINCRBY', KEYS[hash], c, string.format('%d', c_by))
  redis.call('HSET', KEYS[hash], name, text)
end
