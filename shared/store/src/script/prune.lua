-- Fragment: removes counters and places of days and months long past from the agent KEYS[agent]. Needs period.lua.
local DAYS_KEPT, MONTHS_KEPT = 40, 200 -- in days, and in the distance of month numbers (two years)
local function prune(agent)
  for _, name_text in ipairs(call('HKEYS', KEYS[agent])) do
    local kind, number = string.match(name_text, '^([dmsw])(%d+)$')
    local monthly = kind == 'm' or kind == 's'
    local age = kind and (monthly and month or today) - tonumber(number) or 0
    if age > (monthly and MONTHS_KEPT or DAYS_KEPT) then call('HDEL', KEYS[agent], name_text) end
  end
end

