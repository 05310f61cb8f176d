-- Fragment: counts the stored refusals of the account under idempotency keys, without an index. Needs clock.lua and
-- budget.lua. The account record has '<span> <count> <count of the previous span>', where a span is the lifetime of a
-- record: all existing records belong to these two spans.
local function refusals(life_ms)
  local span = (now_ms - now_ms % life_ms) / life_ms
  local at, this, before = string.match(counted('refusals'), '^(%d+) (%d+) (%d+)$')
  if tonumber(at or '0') == span then return span, tonumber(this), tonumber(before) end
  if tonumber(at or '0') == span - 1 then return span, 0, tonumber(this) end
  return span, 0, 0
end

-- Returns whether the refusal of the request `id` ('' = it is not stored) would exceed the budget.
local function is_refusal_over(id, life_ms)
  if id == '' then return false end
  local _, this, before = refusals(tonumber(life_ms))
  return is_full('refusals', this + before)
end

local function count_refusal(id, life_ms)
  if id == '' then return end
  local span, this, before = refusals(tonumber(life_ms))
  call('HSET', KEYS.account, format('%s_refusals', ARGV.mode), format('%d %d %d', span, this + 1, before))
end

