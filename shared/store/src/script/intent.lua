-- Fragment: intents. An index is six keys in a row: the lists of all intents, of its kind, of its agent, of the settled
-- and of the blocked ones, and the sorted set of those that wait for approval.
-- `heads` is a list of <word>=<hash>: the timeline's last hash for each outcome (decision D25), computed by Rust.
local function head_for(heads, outcome)
  for word, hash in string.gmatch(heads, '(%S+)=(%x+)') do
    if word == outcome then return hash end
  end
end

-- Intents of an account and mode are numbered in the order in which they are added to their lists, so that a position
-- in a list has a permanent name. An intent that is decided later gets another number for the list of its state.
local function next_seq()
  return format('%d', call('HINCRBY', KEYS.account, format('%s_intent_seq', ARGV.mode), 1))
end

local function file_under(index, id, state)
  if state == 'pending_approval' then
    call('ZADD', KEYS[index + 5], now_ms, id)
  elseif state == 'settled' then
    call('RPUSH', KEYS[index + 3], id)
  else
    call('RPUSH', KEYS[index + 4], id)
  end
end

-- Writes a new intent in its first state, and counts the text that it keeps for the account record; ARGV[first] and on
-- are its other fields and their values.
local function keep_intent(intent, index, id, state, reason, heads, first)
  local head = head_for(heads, state == 'blocked' and reason or state)
  call('HSET', KEYS[intent], 'id', id, 'state', state, 'first', state, 'reason', reason, 'head', head,
    'seq', next_seq(), unpack(ARGV, first))
  local texts = call('HMGET', KEYS[intent], 'request', 'note')
  local bytes = #texts[1] + #(texts[2] or '')
  call('HINCRBY', KEYS.account, format('%s_text_bytes', ARGV.mode), bytes)
  call('RPUSH', KEYS[index], id)
  call('RPUSH', KEYS[index + 1], id)
  call('RPUSH', KEYS[index + 2], id)
  file_under(index, id, state)
end

