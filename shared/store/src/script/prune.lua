-- Fragment: removes counters of days and months long past from the agent KEYS[agent]. Needs period.lua.
local DAYS_KEPT, MONTHS_KEPT = 40, 200 -- in days, and in the distance of month numbers (two years)
local function prune(agent)
  for _, name_text in ipairs(call('HKEYS', KEYS[agent])) do
    local kind, number = string.match(name_text, '^([dmw])(%d+)$')
    local age = kind and (kind == 'm' and month or today) - tonumber(number) or 0
    if age > (kind == 'm' and MONTHS_KEPT or DAYS_KEPT) then call('HDEL', KEYS[agent], name_text) end
  end
end

