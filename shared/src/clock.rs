//! The one place that reads the wall clock. Periods (day, month) never come from here: they come from the
//! store's clock, so that every edge agrees. This clock only stamps ids, logs and records.

use std::time::{Duration, UNIX_EPOCH};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
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
        assert_eq!(ms_from_iso("1969-12-31T23:59:59Z"), None);
    }
}
