-- Fragment: the record of a transfer or deposit, which makes a request execute at most once (decision D26). Needs
-- change.lua.
-- Unlike an intent, the record is not listed, and it expires. A request without a key (`id` is '') has none, since
-- nobody could repeat it. The arguments from ARGV[first] on are fields and their values; `at` becomes the store's time.
local function keep_record(record, id, life_ms, first, state, reason, balance)
  if id == '' then return end
  call('HSET', KEYS[record], unpack(ARGV, first))
  call('HSET', KEYS[record], 'id', id, 'state', state, 'first', state, 'reason', reason, 'head', '', 'at', now,
    'balance', balance)
  call('PEXPIRE', KEYS[record], life_ms)
end

