//! UTC days and months of counters. The scripts compute the same two numbers from the store's clock.

/// Milliseconds in a day.
pub const DAY_MS: u64 = 86_400_000;

/// The UTC day and month of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Days since 1970-01-01.
    pub day: u64,
    /// Year × 100 + month, such as `202611`.
    pub month: u64,
}

impl Period {
    /// Returns the period of `at_ms` milliseconds since 1970.
    pub const fn at(at_ms: u64) -> Self {
        let day = at_ms / DAY_MS;
        let (year, month, _) = civil_date(day);
        Self {
            day,
            month: year * 100 + month,
        }
    }

    /// The first day of its month.
    pub const fn month_start(self) -> u64 {
        let (_, _, date) = civil_date(self.day);
        self.day + 1 - date
    }
}

/// Returns year, month and day of the day `day` days after 1970-01-01.
///
/// Howard Hinnant's `civil_from_days`: years begin in March, so that the leap day is the last day of a year, and eras
/// have 400 years.
pub(crate) const fn civil_date(day: u64) -> (u64, u64, u64) {
    let since_era_0 = day + 719_468;
    let (era, day_of_era) = (since_era_0 / 146_097, since_era_0 % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let date = day_of_year - (153 * march_month + 2) / 5 + 1;
    let (month, next_year) = if march_month < 10 {
        (march_month + 3, 0)
    } else {
        (march_month - 9, 1)
    };
    (era * 400 + year_of_era + next_year, month, date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_calendar(at_ms in 0_u64..7_258_118_400_000) {
            let text = crate::timestamp::iso_from_ms(at_ms);
            let month: u64 = (text[0..4].to_owned() + &text[5..7]).parse().unwrap();
            prop_assert_eq!(Period::at(at_ms).month, month);
            let first = crate::timestamp::iso_from_ms(Period::at(at_ms).month_start() * DAY_MS);
            prop_assert_eq!(first, format!("{}01T00:00:00.000Z", &text[..8]));
        }
    }

    #[test]
    fn edges_of_periods() {
        let at = |text: &str| Period::at(crate::timestamp::ms_from_iso(text).unwrap());
        assert_eq!(
            at("1970-01-01T00:00:00Z"),
            Period {
                day: 0,
                month: 197_001
            }
        );
        assert_eq!(at("2028-02-29T23:59:59.999Z").month, 202_802);
        assert_eq!(at("2028-03-01T00:00:00Z").month, 202_803);
        assert_eq!(at("2026-12-31T23:59:59.999Z").month, 202_612);
        assert_eq!(
            at("2027-01-01T00:00:00Z").day,
            at("2026-12-31T23:59:59.999Z").day + 1
        );
    }
}
