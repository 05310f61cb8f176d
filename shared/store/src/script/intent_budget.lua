-- Fragment: the budgets of intents (decision D71).
-- Returns the kind of records of which another intent would be one too many, or nil; `index` is that of intents.
local function full_of_intents(index)
  if is_full('intents', call('LLEN', KEYS[index])) then return 'intents' end
  if is_full('text_bytes', counted('text_bytes')) then return 'text_bytes' end
end
