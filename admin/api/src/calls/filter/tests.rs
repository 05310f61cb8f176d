//! Filters as a query gives them, and the calls that they select.

use super::*;
use domain::entry::Entry;
use domain::timestamp::ms_from_iso;

fn parsed(pairs: &[(&str, &str)]) -> Result<CallFilter, Problem> {
    let query = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    CallFilter::from_query(&query.collect())
}

#[test]
fn only_types_that_can_fit_are_read() {
    let kinds = |pairs: &[(&str, &str)]| parsed(pairs).unwrap().kinds;
    let [approved, denied, voided, window] = KINDS;
    assert_eq!(kinds(&[]), KINDS);
    assert_eq!(kinds(&[("outcome", "settled")]), [approved]);
    assert_eq!(kinds(&[("outcome", "voided")]), [approved, voided]);
    assert_eq!(kinds(&[("outcome", "unsent")]), [denied]);
    assert_eq!(kinds(&[("outcome", DENIED)]), [denied, window]);
    assert_eq!(kinds(&[("reason", "daily_limit")]), [denied, window]);
    assert_eq!(kinds(&[("minCostUsd", "0.5")]), [approved]);
    assert_eq!(kinds(&[("minLatencyMs", "1")]), [approved]);
    assert_eq!(kinds(&[("minEstimatedUsd", "0.5")]), KINDS);
    assert_eq!(kinds(&[("chargedFrom", "2026-11-01")]), [approved, voided]);
    assert_eq!(
        kinds(&[("chargedTo", "2026-11-01"), ("minCostUsd", "1")]),
        [approved]
    );
}

#[test]
fn the_calls_of_a_day_are_those_that_are_charged_to_it() {
    const SPREAD_MS: u64 = 600_000;
    let ms = |text: &str| ms_from_iso(text).unwrap();
    let filter = parsed(&[("chargedFrom", "2026-11-01"), ("chargedTo", "2026-12-01")]).unwrap();
    assert!(!filter.is_of_the_index());
    let wanted = filter.selection(SPREAD_MS);
    assert_eq!(wanted.from_ms, Some(ms("2026-10-31T23:50:00Z")));
    assert_eq!(wanted.to_ms, Some(ms("2026-12-02T00:10:00Z")));
    assert_eq!(
        wanted.late,
        Some(LateCalls {
            days: (
                ms("2026-11-01T00:00:00Z") / DAY_MS,
                ms("2026-12-01T00:00:00Z") / DAY_MS
            ),
            to_ms: None
        })
    );
    let narrower = [
        ("from", "2026-11-05T00:00:00Z"),
        ("to", "2026-11-06T00:00:00Z"),
        ("chargedFrom", "2026-11-01"),
        ("chargedTo", "2026-12-01"),
    ];
    let both = parsed(&narrower).unwrap();
    let wanted = both.selection(SPREAD_MS);
    assert_eq!(wanted.from_ms, Some(ms("2026-11-05T00:00:00Z")));
    assert_eq!(wanted.to_ms, Some(ms("2026-11-06T00:00:00Z")));
    assert_eq!(wanted.late, None, "none was recorded before `to`");
    let of = |day: &str, rest: &str| {
        let number = ms(&format!("{day}T00:00:00Z")) / DAY_MS;
        let at_ms = ms("2026-12-01T00:00:05Z");
        let rest = rest.replace("DAY", &number.to_string());
        CallRecord::from_entry(&Entry::from_line(7, format!("7 {at_ms} {rest}").as_bytes())).unwrap()
    };
    let approved =
        "A settled 5 allow_01KAH3V9J80000000000000001 H 9 DAY 202611 0 ,,,,,, acct_x bot - vk_1 p1 m";
    for (day, is_of_november) in [
        ("2026-10-31", false),
        ("2026-11-01", true),
        ("2026-11-30", true),
        ("2026-12-01", false),
    ] {
        assert_eq!(filter.fits(&of(day, approved)), is_of_november, "{day}");
    }
    let denied = "D daily_limit deny_01KAH3V9J80000000000000001 9 ,,,,,, acct_x bot - vk_1 p1 m";
    let later = parsed(&[("chargedFrom", "2026-11-01")]).unwrap();
    assert!(!later.fits(&of("2026-12-01", denied)), "it is charged to no day");
}

#[test]
fn each_measure_has_its_filter() {
    let measures = Measures {
        input_tokens: Some(1),
        cached_tokens: Some(2),
        output_tokens: Some(3),
        latency_ms: Some(4),
        first_byte_ms: Some(5),
        ..Measures::default()
    };
    let measured = FILTERS
        .iter()
        .filter_map(|filter| Some((filter.name, filter.measure?)));
    let found = measured.map(|(name, measure)| (name, measure(&measures)));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ("minInputTokens", Some(1)),
            ("minCachedTokens", Some(2)),
            ("minOutputTokens", Some(3)),
            ("minLatencyMs", Some(4)),
            ("minFirstByteMs", Some(5)),
        ]
    );
}

#[test]
fn a_malformed_parameter_is_named() {
    let long = "m".repeat(MODEL_MAX + 1);
    for (name, bad) in [
        ("agentId", "user"),
        ("agentId", ""),
        ("runId", "a b"),
        ("keyId", "vk_1"),
        ("keyId", "key_01KAH3V9J80000000000000001"),
        ("model", ""),
        ("model", &long),
        ("endpoint", "chat"),
        ("upstream", ""),
        ("upstream", "My Azure"),
        ("outcome", "open"),
        ("outcome", ""),
        ("reason", "because"),
        ("minCostUsd", "0"),
        ("minCostUsd", "cheap"),
        ("minCostUsd", "0.0000000001"),
        ("minCostUsd", "\"1\""),
        ("minEstimatedUsd", "dear"),
        ("minInputTokens", "0"),
        ("minInputTokens", "+1"),
        ("minCachedTokens", "-1"),
        ("minOutputTokens", "1.5"),
        ("minLatencyMs", "18446744073709551616"),
        ("minFirstByteMs", ""),
        ("from", "yesterday"),
        ("to", "2026"),
        ("chargedFrom", "2026-11"),
        ("chargedFrom", "2026-11-31"),
        ("chargedTo", "2026-11-01T00:00:00Z"),
        ("chargedTo", ""),
    ] {
        let problem = parsed(&[(name, bad)]).unwrap_err();
        assert!(format!("{problem:?}").contains(name), "{name}={bad}: {problem:?}");
    }
    assert!(parsed(&[("model", &long[1..])]).is_ok(), "at the bound");
}
