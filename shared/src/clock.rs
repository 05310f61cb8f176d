//! The one place that reads the wall clock. Periods (day, month) never come from here: they come from the
//! store's clock, so that every edge agrees. This clock only stamps ids, logs and records.

use crate::domain::period::civil_date;
use std::time::{Duration, UNIX_EPOCH};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[must_use]
pub fn now_ms() -> u64 {
    u64::try_from(since_epoch().as_millis()).unwrap_or(u64::MAX)
}

/// Nanoseconds since 1970-01-01T00:00:00Z, for traces.
#[must_use]
pub fn now_nanos() -> u64 {
    u64::try_from(since_epoch().as_nanos()).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn since_epoch() -> Duration {
    std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
}

/// The moment for a log line: ISO 8601 in UTC with microseconds, made without an allocation.
pub(crate) fn iso_micros_now() -> IsoMicros {
    let now = since_epoch();
    IsoMicros::of(now.as_secs(), now.subsec_micros())
}

/// A moment such as `2026-11-20T22:36:43.123456Z`.
pub(crate) struct IsoMicros([u8; 27]);

impl IsoMicros {
    /// Up to the year 9999.
    fn of(seconds: u64, micros: u32) -> Self {
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, date) = civil_date(days);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        digits(&mut text[0..4], year);
        digits(&mut text[5..7], month);
        digits(&mut text[8..10], date);
        digits(&mut text[11..13], second / 3_600);
        digits(&mut text[14..16], second / 60 % 60);
        digits(&mut text[17..19], second % 60);
        digits(&mut text[20..26], micros.into());
        Self(text)
    }

    /// Its text.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Fills `room` with the last digits of `value`.
fn digits(room: &mut [u8], mut value: u64) {
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// An ISO 8601 UTC timestamp with milliseconds, such as `2026-11-20T22:36:43.123Z`.
#[must_use]
pub fn iso_from_ms(at_ms: u64) -> String {
    let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

/// The milliseconds of an ISO 8601 timestamp, or `None` when the text is none or lies before 1970.
#[must_use]
pub fn ms_from_iso(text: &str) -> Option<u64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn iso_text_round_trips() {
        assert_eq!(iso_from_ms(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_from_ms(1_795_214_203_120), "2026-11-20T22:36:43.120Z");
        assert_eq!(ms_from_iso("2026-11-20T22:36:43.120Z"), Some(1_795_214_203_120));
        assert_eq!(
            ms_from_iso("2026-11-20T23:36:43.120+01:00"),
            Some(1_795_214_203_120)
        );
        assert_eq!(ms_from_iso("yesterday"), None);
        let here = ms_from_iso(iso_micros_now().as_str()).unwrap();
        assert!(now_ms().abs_diff(here) < 60_000, "{here}");
        assert_eq!(ms_from_iso("1969-12-31T23:59:59Z"), None);
    }

    proptest! {
        #[test]
        fn a_log_moment_reads_back(seconds in 0_u64..253_402_300_800, micros in 0_u32..1_000_000) {
            let text = IsoMicros::of(seconds, micros);
            let at: jiff::Timestamp = text.as_str().parse().unwrap();
            let micros = i64::try_from(seconds).unwrap() * 1_000_000 + i64::from(micros);
            prop_assert_eq!(at.as_microsecond(), micros);
        }
    }
}
