//! Bounds of the settings that are numbers, each by itself. Rules between settings are in [`load`](crate::load()).

use super::BadSettings;
use domain::price::USAGE_TOKENS_MAX;
use std::ops::RangeInclusive;
use toml::{Table, Value};

/// Longest configurable duration in ms: 7 days. Sums of several durations stay far below the limits of timers, and of
/// the exact integers in the store's scripts (doubles).
pub(crate) const WEEK_MS: i64 = 7 * 24 * 3_600_000;
/// Longest retention of idempotency keys (decision D26), and longest configurable duration in days.
const DAYS_MAX: i64 = 36_500;
/// Minimum of `store.max_clock_difference_ms`: the difference allowed by the alert `TollgateStoreClock`, so that the
/// alert fires whenever everything is denied.
pub(crate) const CLOCK_DIFFERENCE_MS_MIN: i64 = 60_000;
/// Bounds of `usage_tokens_max` of an upstream: a usage with more is implausible everywhere (decision D64).
pub(crate) const USAGE_TOKENS: RangeInclusive<i64> = 1..=USAGE_TOKENS_MAX.cast_signed();
/// The upper end of a setting that only the machine bounds.
const ANY: i64 = i64::MAX;

/// Minimum and maximum of each bounded number. They apply to each element of a list.
pub(crate) const BOUNDS: [(&str, RangeInclusive<i64>); 43] = [
    ("store.timeout_ms", 1..=WEEK_MS),
    ("store.durability_timeout_ms", 1..=WEEK_MS),
    // The maximum is less than a period.
    (
        "store.max_clock_difference_ms",
        CLOCK_DIFFERENCE_MS_MIN..=3_600_000,
    ),
    // More than any machine has processors; each takes a stack.
    ("proxy.threads", 0..=1024),
    ("proxy.max_connections", 1..=ANY),
    ("proxy.max_connections_per_address", 1..=ANY),
    ("proxy.max_body_bytes", 1..=ANY),
    // Each takes about 400 bytes.
    ("proxy.max_remembered_keys", 1..=10_000_000),
    ("proxy.client_timeout_ms", 1..=WEEK_MS),
    ("proxy.retry_queue_limit", 1..=ANY),
    ("proxy.hold_grace_ms", 0..=WEEK_MS),
    ("proxy.drain_ms", 0..=WEEK_MS),
    // Longest time for a load balancer to notice.
    ("proxy.drain_delay_ms", 0..=300_000),
    ("proxy.stream_first_byte_ms", 1..=WEEK_MS),
    ("proxy.stream_idle_ms", 1..=WEEK_MS),
    ("proxy.stream_total_ms", 1..=WEEK_MS),
    ("proxy.stream_drain_ms", 0..=WEEK_MS),
    ("upstream.timeout_ms", 1..=WEEK_MS),
    ("upstream.max_response_bytes", 1..=ANY),
    ("upstream.usage_tokens_max", USAGE_TOKENS),
    ("admin.max_connections", 1..=ANY),
    ("admin.max_connections_per_address", 1..=ANY),
    ("admin.client_timeout_ms", 1..=WEEK_MS),
    // One account's quarter must fit the longest body.
    ("admin.max_buffered_bytes", 4 << 20..=ANY),
    ("admin.drain_delay_ms", 0..=300_000),
    ("sessions.absolute_hours", 1..=720),
    ("webhooks.retry_delays_ms", 0..=WEEK_MS),
    ("webhooks.max_attempts", 1..=ANY),
    ("webhooks.timeout_ms", 1..=WEEK_MS),
    ("webhooks.endpoints_at_once", 1..=ANY),
    ("webhooks.requests_at_once", 1..=ANY),
    ("webhooks.waiting_max", 1..=ANY),
    ("webhooks.history_max", 1..=ANY),
    ("webhooks.secret_overlap_hours", 0..=365 * 24),
    ("audit.seal_every_ms", 1..=WEEK_MS),
    ("audit.checkpoint_every_ms", 1..=WEEK_MS),
    ("audit.archive_after_days", 1..=DAYS_MAX),
    ("audit.archive_after_entries", 1..=ANY),
    ("audit.segment_entries", 1..=ANY),
    ("audit.archive_intents_after_days", 0..=DAYS_MAX),
    ("idempotency.retention_days", 30..=DAYS_MAX),
    ("limits.test_requests_per_minute", 1..=ANY),
    ("limits.session_requests_per_minute", 1..=ANY),
];

/// Checks all numbers of the configuration.
pub(crate) fn check(settings: &Table) -> Result<(), BadSettings> {
    for (name, bounds) in &BOUNDS {
        for number in numbers(settings, name) {
            check_number(number, bounds).map_err(|what| BadSettings(format!("`{name}` {what}")))?;
        }
    }
    Ok(())
}

/// Checks one number. The error says which values are allowed.
pub(crate) fn check_number(number: i64, bounds: &RangeInclusive<i64>) -> Result<(), String> {
    match (bounds.start(), bounds.end()) {
        _ if bounds.contains(&number) => Ok(()),
        (least, &ANY) => Err(format!("must be at least {least}")),
        (least, most) => Err(format!("must be from {least} to {most}")),
    }
}

/// Returns the number with this name, or the numbers of a list. Values of other types are refused elsewhere.
fn numbers<'a>(settings: &'a Table, name: &str) -> impl Iterator<Item = i64> + 'a {
    let keys = name.split_once('.');
    let value = keys.and_then(|(section, key)| settings.get(section)?.get(key));
    let values = value.map_or(&[][..], |value| {
        value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice)
    });
    values.iter().filter_map(Value::as_integer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_from;

    /// Returns the message that refuses a value; `None` if it is within the bounds.
    fn refused(name: &str, value: i64) -> Option<String> {
        let mut settings: Table = include_str!("../../../config/tollgate.toml").parse().unwrap();
        assert!(numbers(&settings, name).next().is_some(), "{name} has no number");
        let (section, key) = name.split_once('.').unwrap();
        let setting = &mut settings[section][key];
        *setting = match setting {
            Value::Array(_) => vec![1, value].into(),
            _ => value.into(),
        };
        check(&settings).err().map(|error| error.to_string())
    }

    #[test]
    fn every_bound_holds_and_is_named() {
        for (name, bounds) in &BOUNDS {
            let (least, most) = (*bounds.start(), *bounds.end());
            assert_eq!(
                (refused(name, least), refused(name, most)),
                (None, None),
                "{name}"
            );
            let line = match most {
                ANY => format!("`{name}` must be at least {least}"),
                most => format!("`{name}` must be from {least} to {most}"),
            };
            let beyond = [least - 1, most.checked_add(1).unwrap_or(least - 1)];
            for value in beyond {
                assert_eq!(refused(name, value).as_ref(), Some(&line), "{value}");
            }
        }
    }

    #[test]
    fn bounds_are_checked_on_loading() {
        for (text, line) in [
            (
                "[store]\ntimeout_ms = 0\n",
                "`store.timeout_ms` must be from 1 to 604800000",
            ),
            (
                "[store]\nmax_clock_difference_ms = 59999\n",
                "`store.max_clock_difference_ms` must be from 60000 to 3600000",
            ),
            (
                "[idempotency]\nretention_days = 29\n",
                "`idempotency.retention_days` must be from 30 to 36500",
            ),
            (
                "[proxy]\nmax_connections = -1\n",
                "`proxy.max_connections` must be at least 1",
            ),
        ] {
            let error = load_from(Some(text), std::iter::empty()).unwrap_err();
            assert_eq!(error.to_string(), line);
        }
    }
}
