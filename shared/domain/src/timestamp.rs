//! Timestamps as text: ISO 8601 in UTC, as in responses, records and logs.

use crate::period::{DAY_MS, civil_date};
use jiff::civil::Date;
use jiff::fmt::temporal::Pieces;

/// The last time that [`iso_from_ms`] can write, in ms since 1970: 9999-12-30T22:00:00.999Z. Later times are converted
/// to it, so it does not stand for a real time.
pub const LAST_MS: u64 = 253_402_207_200_999;
/// The date of [`jiff::Timestamp::MAX`].
const LAST_DATE: Date = jiff::civil::date(9999, 12, 30);

/// Formats an ISO 8601 UTC timestamp with milliseconds, such as `2026-11-20T22:36:43.123Z`.
pub fn iso_from_ms(at_ms: u64) -> String {
    let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

/// Formats a UTC day, in days since 1970, as its date, such as `2026-11-21`.
pub fn date_from_day(day: u64) -> String {
    let mut text = iso_from_ms(day.saturating_mul(DAY_MS));
    text.truncate("2026-11-21".len());
    text
}

/// Parses a UTC day of ten characters, such as `2026-11-21`, to days since 1970.
pub fn day_from_date(text: &str) -> Option<u64> {
    let at_ms = ms_from_iso(&format!("{text}T00:00:00Z")).filter(|_| text.len() == "2026-11-21".len());
    Some(at_ms? / DAY_MS)
}

/// Formats a time for sentences, such as `2026-11-20 22:37 UTC`, with seconds if they are not zero. Fractions of a
/// second round up, so that an end is never stated too early.
pub fn spoken_from_ms(at_ms: u64) -> String {
    let iso = iso_from_ms(at_ms.div_ceil(1000).saturating_mul(1000));
    let (date, time) = iso.split_once('T').unwrap_or((iso.as_str(), ""));
    let time = time.split('.').next().unwrap_or_default();
    let time = time.strip_suffix(":00").unwrap_or(time);
    format!("{date} {time} UTC")
}

/// Parses an ISO 8601 timestamp to ms since 1970; `None` if malformed or before 1970. The last hours of the year 9999,
/// in which not every offset has a UTC time, are the last moment that [`iso_from_ms`] can write.
pub fn ms_from_iso(text: &str) -> Option<u64> {
    let at = text.parse().ok().or_else(|| end_of_time(text))?;
    u64::try_from(jiff::Timestamp::as_millisecond(at)).ok()
}

/// Returns the last time for a timestamp after it.
fn end_of_time(text: &str) -> Option<jiff::Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    let at = pieces.date().to_datetime(pieces.time()?);
    pieces.to_numeric_offset()?;
    (at.date() >= LAST_DATE).then_some(jiff::Timestamp::MAX)
}

/// Buffer for a timestamp such as `2026-11-20T22:36:43.123456Z`.
#[derive(Debug)]
pub struct IsoMicros([u8; 27]);

impl IsoMicros {
    /// Formats microseconds since 1970, up to the year 9999.
    pub fn from_micros(micros: u64) -> Self {
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, date) = civil_date(days);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        digits(&mut text[0..4], year);
        digits(&mut text[5..7], month);
        digits(&mut text[8..10], date);
        digits(&mut text[11..13], second / 3_600);
        digits(&mut text[14..16], second / 60 % 60);
        digits(&mut text[17..19], second % 60);
        digits(&mut text[20..26], micros);
        Self(text)
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_day_has_ten_characters() {
        assert_eq!(day_from_date("1970-01-02"), Some(1));
        for text in [
            "",
            "2026-11-8",
            "2026-11-31",
            "2026-11-28T00:00:00Z",
            "20261128",
            "1969-12-31",
        ] {
            assert_eq!(day_from_date(text), None, "{text}");
        }
    }

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

    #[test]
    fn sentences_say_minutes_and_no_less_than_seconds() {
        for (at_ms, text) in [
            (1_795_219_200_000, "2026-11-21 00:00 UTC"),
            (1_795_214_220_000, "2026-11-20 22:37 UTC"),
            (1_795_214_203_000, "2026-11-20 22:36:43 UTC"),
            (1_795_214_203_120, "2026-11-20 22:36:44 UTC"),
            (1_795_219_199_001, "2026-11-21 00:00 UTC"),
            (u64::MAX, "9999-12-30 22:00 UTC"),
        ] {
            assert_eq!(spoken_from_ms(at_ms), text, "{at_ms}");
        }
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let last = ms_from_iso("9999-12-30T22:00:00.999Z").unwrap();
        for text in [
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999999999Z",
            "9999-12-30T22:00:01Z",
            "9999-12-31T23:59:59-12:00",
            "9999-12-31T23:59:59+00:00",
        ] {
            assert_eq!(ms_from_iso(text), Some(last), "{text}");
        }
        assert_eq!(
            (last, iso_from_ms(last).as_str()),
            (LAST_MS, "9999-12-30T22:00:00.999Z")
        );
        assert_eq!(iso_from_ms(u64::MAX), iso_from_ms(last));
        let before = ms_from_iso("9999-12-31T12:00:00+14:00");
        assert_eq!(before, Some(last - 999), "it has a UTC time");
        for text in [
            "9999-12-31",
            "9999-12-31T23:59:59",
            "10000-01-01T00:00:00Z",
            "9999-12-32T00:00:00Z",
        ] {
            assert_eq!(ms_from_iso(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_log_moment_reads_back(micros in 0_u64..253_402_300_800_000_000) {
            let text = IsoMicros::from_micros(micros);
            let at: jiff::Timestamp = text.as_str().parse().unwrap();
            prop_assert_eq!(at.as_microsecond(), i64::try_from(micros).unwrap());
        }
    }
}
