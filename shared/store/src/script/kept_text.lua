-- Fragment: the bytes of text that stay in agents' rows and transactions, for the guard (decision D71). No budget
-- counts them.
local function count_kept_text(bytes)
  if bytes ~= 0 then call('HINCRBY', KEYS.account, format('%s_kept_text', ARGV.mode), bytes) end
end

