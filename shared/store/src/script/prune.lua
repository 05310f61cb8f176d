-- Fragment: removes counters and slots of days and months long past from the agent KEYS[agent]. The newest of each
-- kind stay whatever the clock says: a clock that jumps ahead by more than DAYS_KEPT and back would otherwise take the
-- present day's counter with it, and its limit could be spent again. Needs period.lua.
local DAYS_KEPT, MONTHS_KEPT, NEWEST_KEPT = 40, 200, 7 -- days, the distance of month numbers (two years), counters
local function prune(agent)
  local kinds = {}
  for _, name_text in ipairs(call('HKEYS', KEYS[agent])) do
    local kind_text, number_text = string.match(name_text, '^([dmsw])(%d+)$')
    if kind_text then
      local numbers = kinds[kind_text] or {}
      kinds[kind_text] = numbers
      numbers[#numbers + 1] = tonumber(number_text)
    end
  end
  for _, kind_text in ipairs({'d', 'm', 's', 'w'}) do
    local monthly = kind_text == 'm' or kind_text == 's'
    local numbers = kinds[kind_text] or {}
    table.sort(numbers)
    for nth = 1, #numbers - NEWEST_KEPT do
      local age = (monthly and month or today) - numbers[nth]
      if age > (monthly and MONTHS_KEPT or DAYS_KEPT) then
        local number_text = format('%d', numbers[nth])
        call('HDEL', KEYS[agent], kind_text .. number_text)
      end
    end
  end
end
