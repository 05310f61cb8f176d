//! The span of time of a usage report, in whole UTC days or hours, and the interval that a call counts in.

use domain::call_record::CallRecord;
use domain::period::DAY_MS;
use domain::timestamp::LAST_MS;
use endpoint::{Problem, QueryParams, TimeRange};

/// Milliseconds in an hour.
const HOUR_MS: u64 = DAY_MS / 24;
pub(crate) const DAYS_DEFAULT: u64 = 30;
/// Maximum number of days of a span by day.
pub(crate) const DAYS_MAX: u64 = 400;
/// Maximum number of days of a span by hour.
pub(crate) const HOURLY_DAYS_MAX: u64 = 31;

domain::words! {
    /// Length of the intervals.
    pub(crate) enum Interval {
        /// A UTC day.
        Day = "day",
        /// A UTC hour.
        Hour = "hour",
    }
}

/// A span of whole intervals, in ms since 1970; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageSpan {
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
}

impl Interval {
    /// Reads `interval`; by the day without it.
    ///
    /// # Errors
    /// 400 for any other word.
    pub(crate) fn from_query(query: &QueryParams) -> Result<Self, Problem> {
        let interval = query.get("interval").map_or(Some(Self::Day), Self::parse);
        interval.ok_or_else(|| Problem::validation("interval must be day or hour."))
    }

    const fn ms(self) -> u64 {
        match self {
            Self::Day => DAY_MS,
            Self::Hour => HOUR_MS,
        }
    }

    const fn days_max(self) -> u64 {
        match self {
            Self::Day => DAYS_MAX,
            Self::Hour => HOURLY_DAYS_MAX,
        }
    }
}

impl UsageSpan {
    /// Parses `from` and `to` by the rule of all lists, and extends them to whole intervals. Without `to` the span ends
    /// with the current interval, or with a later `from`; without `from` it is [`DAYS_DEFAULT`] days long. A span of
    /// equal moments at the start of an interval is empty.
    ///
    /// # Errors
    /// 400 for a span that is reversed or too long.
    pub(crate) fn from_query(query: &QueryParams, interval: Interval, now_ms: u64) -> Result<Self, Problem> {
        let step = interval.ms();
        let ceiling = |at_ms: u64| at_ms.div_ceil(step).saturating_mul(step);
        let range = TimeRange::from_query(query)?;
        let now_ms = range
            .from_ms
            .map_or(now_ms + 1, |from_ms| from_ms.max(now_ms + 1));
        let to_ms = ceiling(range.to_ms.unwrap_or(now_ms));
        let from_ms = range
            .from_ms
            .unwrap_or_else(|| to_ms.saturating_sub(DAYS_DEFAULT * DAY_MS));
        let from_ms = from_ms - from_ms % step;
        if to_ms > LAST_MS {
            return Err(Problem::validation("to must lie before 9999-12-30T22:00:00Z."));
        }
        let most = interval.days_max();
        if to_ms - from_ms > most * DAY_MS {
            let word = interval.as_str();
            let message = format!("from and to must enclose at most {most} days by the {word}.");
            return Err(Problem::validation(message));
        }
        Ok(Self { from_ms, to_ms })
    }

    /// Returns the first day that has an interval of the span, and the one after the last.
    pub(crate) fn days(self) -> (u64, u64) {
        (self.from_ms / DAY_MS, self.to_ms.div_ceil(DAY_MS))
    }

    /// Returns the beginning of the interval that a call counts in; `None` if that is not in the span. Its day is the
    /// one that it is charged to by the store's clock; its hour is that of its id, by the edge's clock, within this
    /// day.
    pub(crate) fn interval_of(self, interval: Interval, call: &CallRecord) -> Option<u64> {
        let day_ms = call.day.checked_mul(DAY_MS)?;
        let at_ms = match interval {
            Interval::Day => day_ms,
            Interval::Hour => {
                let in_day = call.decided_ms.clamp(day_ms, day_ms.saturating_add(DAY_MS - 1));
                in_day - in_day % HOUR_MS
            }
        };
        (self.from_ms <= at_ms && at_ms < self.to_ms).then_some(at_ms)
    }

    /// Returns from when on intervals are whole, if all was read that was recorded after `oldest_ms`.
    pub(crate) fn whole_from(self, interval: Interval, oldest_ms: Option<u64>) -> u64 {
        // Entries of the same millisecond as the oldest one may be missing.
        let first = oldest_ms.map_or(self.to_ms, |oldest_ms| oldest_ms.saturating_add(1));
        let step = interval.ms();
        let whole = first.div_ceil(step).saturating_mul(step);
        whole.clamp(self.from_ms, self.to_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::entry::Entry;
    use domain::id::IdKind;
    use domain::timestamp::{iso_from_ms, ms_from_iso};

    fn ms(text: &str) -> u64 {
        ms_from_iso(text).unwrap()
    }

    fn span(interval: Interval, pairs: &[(&str, &str)]) -> Result<[String; 2], Problem> {
        let query = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let span = UsageSpan::from_query(&query.collect(), interval, ms("2026-11-25T13:40:00Z"))?;
        Ok([span.from_ms, span.to_ms].map(iso_from_ms))
    }

    #[test]
    fn spans_are_whole_intervals() {
        let day = span(Interval::Day, &[]).unwrap();
        assert_eq!(day, ["2026-10-27T00:00:00.000Z", "2026-11-26T00:00:00.000Z"]);
        let hour = [
            ("from", "2026-11-25T10:59:00Z"),
            ("to", "2026-11-25T12:00:00.001Z"),
        ];
        assert_eq!(
            span(Interval::Hour, &hour).unwrap(),
            ["2026-11-25T10:00:00.000Z", "2026-11-25T13:00:00.000Z"]
        );
        // Equal moments are a valid span, as in every list.
        let midnight = "2026-11-25T00:00:00Z";
        let empty = span(Interval::Day, &[("from", midnight), ("to", midnight)]).unwrap();
        assert_eq!(empty, ["2026-11-25T00:00:00.000Z"; 2]);
        let future = span(Interval::Day, &[("from", "2027-01-01T00:00:00Z")]).unwrap();
        assert_eq!(future, ["2027-01-01T00:00:00.000Z"; 2]);
        for (from, to) in [
            ("2026-11-26T00:00:00Z", "2026-11-25T00:00:00Z"),
            // In the same interval, so the whole one would not be empty.
            ("2026-11-25T13:00:00Z", "2026-11-25T12:00:00Z"),
        ] {
            assert!(
                span(Interval::Day, &[("from", from), ("to", to)]).is_err(),
                "{from} {to}"
            );
        }
    }

    #[test]
    fn a_span_ends_before_the_last_moment() {
        for to in ["9999-12-30T00:00:00.001Z", "9999-12-31T23:59:59Z"] {
            assert!(span(Interval::Day, &[("to", to)]).is_err(), "{to}");
        }
        let last = span(Interval::Day, &[("to", "9999-12-30T00:00:00Z")]).unwrap();
        assert_eq!(last[1], "9999-12-30T00:00:00.000Z");
    }

    #[test]
    fn spans_are_bounded() {
        for (interval, most) in [(Interval::Day, DAYS_MAX), (Interval::Hour, HOURLY_DAYS_MAX)] {
            let to = ms("2026-11-25T00:00:00Z");
            let of = |days: u64| {
                let (from, to) = (iso_from_ms(to - days * DAY_MS), iso_from_ms(to));
                span(interval, &[("from", &from), ("to", &to)])
            };
            assert!(of(most).is_ok());
            assert!(of(most + 1).is_err());
        }
    }

    #[test]
    fn a_call_counts_in_the_interval_of_its_approval() {
        let at_ms = ms("2026-11-24T23:59:59.900Z");
        let id = IdKind::Allow.mint(at_ms).unwrap();
        let of = |day: u64| {
            let recorded = at_ms + 600_000;
            let line = format!(
                "7 {recorded} A settled 1 {id} H 2 {day} 202611 0 ,,,,,, acct_x bot - vk_1 p1 gpt-4o"
            );
            CallRecord::from_entry(&Entry::from_line(7, line.as_bytes())).unwrap()
        };
        let today = at_ms / DAY_MS;
        let span = UsageSpan {
            from_ms: today * DAY_MS,
            to_ms: (today + 2) * DAY_MS,
        };
        let interval = |interval, day| span.interval_of(interval, &of(day)).map(iso_from_ms);
        assert_eq!(
            interval(Interval::Day, today).unwrap(),
            "2026-11-24T00:00:00.000Z"
        );
        assert_eq!(
            interval(Interval::Hour, today).unwrap(),
            "2026-11-24T23:00:00.000Z"
        );
        // The store's clock was past midnight: hours add up to the days that Cap counted.
        assert_eq!(
            interval(Interval::Day, today + 1).unwrap(),
            "2026-11-25T00:00:00.000Z"
        );
        assert_eq!(
            interval(Interval::Hour, today + 1).unwrap(),
            "2026-11-25T00:00:00.000Z"
        );
        assert_eq!(interval(Interval::Day, today - 1), None);
        assert_eq!(interval(Interval::Day, today + 2), None);
    }

    #[test]
    fn only_whole_intervals_are_said_to_be_covered() {
        let span = UsageSpan {
            from_ms: ms("2026-11-01T00:00:00Z"),
            to_ms: ms("2026-11-25T00:00:00Z"),
        };
        let whole = |oldest: &str| iso_from_ms(span.whole_from(Interval::Day, Some(ms(oldest))));
        assert_eq!(whole("2026-11-20T12:00:00Z"), "2026-11-21T00:00:00.000Z");
        assert_eq!(whole("2026-11-20T00:00:00Z"), "2026-11-21T00:00:00.000Z");
        assert_eq!(whole("2026-11-19T23:59:59.999Z"), "2026-11-20T00:00:00.000Z");
        assert_eq!(
            whole("2026-11-25T12:00:00Z"),
            "2026-11-25T00:00:00.000Z",
            "nothing of it yet"
        );
        assert_eq!(span.whole_from(Interval::Day, None), span.to_ms);
    }
}
