-- Fragment: the record of a transfer or deposit, by which the same request is made once (decision D26). Needs
--   change.lua.
-- Unlike an intent it is listed nowhere, and it ends. A request without a key (`id` is '') leaves none: nobody could
-- repeat it. ARGV[first] and on are fields and their values; `at` becomes the store's.
local function keep_record(record, id, life_ms, first, state, reason, balance)
  if id == '' then return end
  redis.call('HSET', KEYS[record], unpack(ARGV, first))
  redis.call('HSET', KEYS[record], 'id', id, 'state', state, 'first', state, 'reason', reason, 'head', '', 'at', now,
    'balance', balance)
  redis.call('PEXPIRE', KEYS[record], life_ms)
end

