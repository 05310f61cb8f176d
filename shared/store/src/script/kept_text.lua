-- Fragment: the bytes of text that stay in agents' rows and transactions, for the guard (decision D71). No budget
-- counts them.
-- What a provider key takes beside its sealed text: its fields and their names.
local KEY_BYTES = 400

local function count_kept_text(bytes)
  if bytes ~= 0 then call('HINCRBY', KEYS.account, format('%s_kept_text', ARGV.mode), bytes) end
end

