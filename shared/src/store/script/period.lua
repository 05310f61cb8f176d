-- Fragment: the UTC day and month of the store's clock, as shared/src/domain/period.rs computes them. Needs clock.lua.
local today = math.floor(now_ms / 86400000)

local function month_of(day)
  local z = day + 719468
  local era = math.floor(z / 146097)
  local day_of_era = z - era * 146097
  local year_of_era = math.floor((day_of_era - math.floor(day_of_era / 1460) + math.floor(day_of_era / 36524)
    - math.floor(day_of_era / 146096)) / 365)
  local day_of_year = day_of_era - (365 * year_of_era + math.floor(year_of_era / 4) - math.floor(year_of_era / 100))
  local march_month = math.floor((5 * day_of_year + 2) / 153)
  local month = march_month < 10 and march_month + 3 or march_month - 9
  local year = year_of_era + era * 400
  if month <= 2 then year = year + 1 end
  return year * 100 + month
end

