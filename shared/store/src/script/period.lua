-- Fragment: the UTC day and month of the store's clock, as shared/domain/src/period.rs computes them. Needs clock.lua.
-- `x - x % n` before a division keeps it whole, without a call.
local today = (now_ms - now_ms % 86400000) / 86400000
local since_0000_03 = today + 719468
local day_of_era = since_0000_03 % 146097
local leap_days = (day_of_era - day_of_era % 1460) / 1460 - (day_of_era - day_of_era % 36524) / 36524
  + (day_of_era - day_of_era % 146096) / 146096
local days_of_years = day_of_era - leap_days
local year_of_era = (days_of_years - days_of_years % 365) / 365
local day_of_year = day_of_era - (365 * year_of_era + (year_of_era - year_of_era % 4) / 4
  - (year_of_era - year_of_era % 100) / 100)
local march_month = (5 * day_of_year + 2 - (5 * day_of_year + 2) % 153) / 153
local month = march_month < 10 and march_month + 3 or march_month - 9
local year = year_of_era + (since_0000_03 - day_of_era) / 146097 * 400
month = (month <= 2 and year + 1 or year) * 100 + month
