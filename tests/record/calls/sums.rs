//! Pages, exports and usage agree with the lines, whether these are in the store or in the archive.

use super::trail::{Sums, Written};
use crate::audit_writer::AuditWriter;
use crate::fixture::{Fixture, success, text};
use domain::id::IdKind;
use domain::mode::Mode;
use domain::period::{DAY_MS, Period};
use domain::timestamp::{iso_from_ms, ms_from_iso};
use harness::{Caller, assert_fields, until};
use serde_json::{Value, json};
use store::audit::chain::Chain;

const COUNT: u64 = 700;
/// Entries that stay in the store.
const STAY: u64 = 150;

/// Every call by cursor, in pages of `limit`.
async fn by_cursor(api: &Caller, query: &str, limit: usize) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let reply = api.get(&format!("/v1/calls?limit={limit}{query}{cursor}")).await;
        let page = success(&reply, 200);
        let calls = page["calls"].as_array().unwrap();
        assert!(calls.len() <= limit);
        found.extend(calls.iter().cloned());
        match page["nextCursor"].as_str() {
            None => return found,
            Some(next) => cursor = format!("&cursor={next}"),
        }
    }
}

/// The rows of all answers of a usage report, added up.
pub async fn usage(api: &Caller, query: &str) -> (Sums, usize) {
    let (mut sums, mut cursor, mut answers) = (Sums::new(), String::new(), 0);
    loop {
        let page = success(&api.get(&format!("/v1/usage?{query}{cursor}")).await, 200);
        answers += 1;
        for row in page["usage"].as_array().unwrap() {
            let at = ms_from_iso(text(row, "/at")).unwrap();
            let number = |name: &str| row[name].as_u64().unwrap();
            let cost = text(row, "/costNanos").parse().unwrap();
            let more = [
                number("calls"),
                number("denied"),
                number("inputTokens"),
                number("outputTokens"),
                cost,
            ];
            let sum = sums
                .entry((at, row["group"].as_str().map(str::to_owned)))
                .or_default();
            for (sum, more) in sum.iter_mut().zip(more) {
                *sum += more;
            }
        }
        assert_eq!(
            page["partial"] == json!(true),
            page["nextCursor"] != json!(null),
            "{}",
            page["nextCursor"]
        );
        match page["nextCursor"].as_str() {
            None => return (sums, answers),
            Some(next) => cursor = format!("&cursor={next}"),
        }
    }
}

/// Compares every way to read with the written lines. `is_live`: one request reads all of them.
async fn everything_is_read(written: &Written, is_live: bool) {
    let api = &written.api;
    let expected: Vec<(&str, &str, String)> = written
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.outcome, call.cost.to_string()))
        .collect();
    for limit in [7, 200] {
        let listed = by_cursor(api, "", limit).await;
        let found: Vec<(&str, &str, String)> = listed
            .iter()
            .map(|call| {
                (
                    text(call, "/id"),
                    text(call, "/outcome"),
                    text(call, "/costNanos").to_owned(),
                )
            })
            .collect();
        assert_eq!(found, expected, "pages of {limit}");
    }
    let first = success(&api.get("/v1/calls?limit=5&offset=40").await, 200);
    assert_eq!(first["total"] == json!(written.calls.len()), is_live, "{first}");
    assert_eq!(first["partial"], json!(!is_live));
    assert_eq!(first["calls"][0]["id"], json!(expected[40].0));

    for (query, place, is) in [
        ("&agentId=bot-1", 0, "bot-1"),
        ("&model=m2", 2, "m2"),
        ("&runId=r3", 3, "r3"),
    ] {
        let found = by_cursor(api, query, 50).await;
        let ids: Vec<&str> = found.iter().map(|call| text(call, "/id")).collect();
        let fits = written
            .calls
            .iter()
            .filter(|call| call.groups[place].as_deref() == Some(is));
        assert_eq!(
            ids,
            fits.map(|call| call.id.as_str()).collect::<Vec<_>>(),
            "{query}"
        );
    }

    let csv = api.get("/v1/calls/export").await.text();
    let rows: Vec<&str> = csv.split_terminator("\r\n").skip(1).collect();
    let ids: Vec<&str> = rows.iter().map(|row| row.split(',').next().unwrap()).collect();
    assert_eq!(ids, expected.iter().map(|(id, _, _)| *id).collect::<Vec<_>>());

    for (place, group) in ["agent", "key", "model", "run"].iter().enumerate() {
        for (interval, ms) in [("day", DAY_MS), ("hour", DAY_MS / 24)] {
            let (sums, _) = usage(api, &format!("groupBy={group}&interval={interval}")).await;
            assert_eq!(sums, written.sums(ms, place), "{group} by the {interval}");
        }
    }
}

#[tokio::test]
async fn pages_exports_and_usage_are_those_of_the_lines() {
    let fixture = Fixture::start().await;
    everything_is_read(&Written::write(&fixture, COUNT).await, true).await;
}

#[tokio::test]
async fn and_so_they_are_from_the_archive() {
    let fixture = Fixture::start_with(|options| {
        options
            .env("TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES", STAY.to_string())
            .env("TOLLGATE_AUDIT__SEGMENT_ENTRIES", "60")
    })
    .await;
    let written = Written::write(&fixture, COUNT).await;
    let chain = Chain::new(&fixture.store, written.account.keys.live());
    until("the entries are archived", async || {
        // Before the server seals the entries, none of them counts as live.
        let backlog = chain.backlog().await.unwrap();
        backlog.live <= STAY && backlog.movable >= COUNT
    })
    .await;
    everything_is_read(&written, false).await;
}

#[tokio::test]
async fn a_kept_call_is_shown_as_it_was_corrected_also_behind_the_span() {
    let fixture = Fixture::start().await;
    // Later than the account's other entries, since times are found by binary search.
    let written = Written::write_from(&fixture, 200, clock::now_ms() + 1000).await;
    let corrected = written
        .calls
        .iter()
        .rev()
        .find(|call| call.outcome == "corrected")
        .unwrap();
    let end = iso_from_ms(corrected.decided_ms + 5);
    let page = success(
        &written.api.get(&format!("/v1/calls?to={end}&limit=1")).await,
        200,
    );
    let shown = &page["calls"][0];
    assert_fields!(shown, { "id": corrected.id, "outcome": "corrected" });
    assert_eq!(shown["costNanos"], json!(corrected.cost.to_string()));
    // The call is in one of the two spans: that of the entry that kept it.
    let mut found = by_cursor(&written.api, &format!("&from={end}"), 50).await;
    assert!(!found.iter().any(|call| call["id"] == json!(corrected.id)));
    found.extend(by_cursor(&written.api, &format!("&to={end}"), 50).await);
    let ids: Vec<&str> = found.iter().map(|call| text(call, "/id")).collect();
    let all: Vec<&str> = written.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, all);
}

#[tokio::test]
async fn a_correction_that_arrives_meanwhile_moves_no_call_to_another_page() {
    let fixture = Fixture::start().await;
    let (account, api) = fixture.account("enterprise").await;
    let writer = AuditWriter::new(&fixture.store, &account, Mode::Live);
    let now_ms = clock::now_ms();
    let line = |id: &str, outcome: &str, cost: u64| {
        let period = Period::at(now_ms);
        format!(
            "A {outcome} {cost} {id} H 9 {} {} 0 ,,,,,, acct_x bot - vk_01KAH3V9J80000000000000001 p1 m",
            period.day, period.month
        )
    };
    let ids: Vec<String> = (0..6).map(|_| IdKind::Allow.mint(now_ms).unwrap()).collect();
    let lines = ids.iter().enumerate().map(|(n, id)| {
        let outcome = if n == 2 { "kept" } else { "settled" };
        (now_ms + n as u64, line(id, outcome, 5))
    });
    writer.write(&lines.collect::<Vec<_>>()).await;
    let first = success(&api.get("/v1/calls?limit=3").await, 200);
    writer.write(&[(now_ms + 9, line(&ids[2], "corrected", 1))]).await;
    let next = text(&first, "/nextCursor");
    let second = success(&api.get(&format!("/v1/calls?limit=3&cursor={next}")).await, 200);
    let pages = [&first, &second].map(|page| page["calls"].as_array().unwrap());
    let found: Vec<(&str, &str)> = pages
        .into_iter()
        .flatten()
        .map(|call| (text(call, "/id"), text(call, "/costNanos")))
        .collect();
    let costs = ["5", "5", "5", "1", "5", "5"];
    let expected: Vec<(&str, &str)> = ids.iter().rev().map(String::as_str).zip(costs).collect();
    assert_eq!(found, expected);
}

/// Calls ended after a weekend without the server that ends them: found once, by the day that they are charged to.
#[tokio::test]
async fn calls_that_ended_days_later_are_in_the_usage_and_the_file_of_their_day() {
    let fixture = Fixture::start().await;
    let (account, api) = fixture.account("enterprise").await;
    let writer = AuditWriter::new(&fixture.store, &account, Mode::Live);
    // Later than the account's other entries, since times are found by binary search.
    let day = Period::at(clock::now_ms()).day + 1;
    let later_ms = (day + 4) * DAY_MS;
    let line = |n: u64, outcome: &str, cost: u64| {
        let at_ms = day * DAY_MS + n;
        let id = IdKind::Allow.mint(at_ms).unwrap();
        let month = Period::at(at_ms).month;
        format!(
            "A {outcome} {cost} {id} H 9 {day} {month} 0 ,,,,,, acct_x bot - vk_01KAH3V9J80000000000000001 p1 m"
        )
    };
    let kept = line(4, "kept", 9);
    let corrected = kept.replace("A kept 9", "A corrected 4");
    let lines = vec![
        (day * DAY_MS + 10, line(1, "settled", 1)),
        (later_ms, line(2, "settled", 2)),
        (later_ms + 1, line(3, "settled", 3)),
        (later_ms + 2, kept),
        (later_ms + 3, corrected),
        (later_ms + 4, line(5, "settled", 5)),
    ];
    writer.write(&lines).await;
    let end = |days: u64| iso_from_ms((day + days) * DAY_MS);
    for to in [1, 2, 3, 9] {
        let query = format!("groupBy=agent&from={}&to={}", end(0), end(to));
        let (sums, _) = usage(&api, &query).await;
        let expected = Sums::from([((day * DAY_MS, Some("bot".to_owned())), [5, 0, 0, 0, 15])]);
        assert_eq!(sums, expected, "to {to} days later");
        let charged = format!("&chargedFrom={}&chargedTo={}", &end(0)[..10], &end(to)[..10]);
        for limit in [1, 2, 50] {
            let found = by_cursor(&api, &charged, limit).await;
            let costs: Vec<&str> = found.iter().map(|call| text(call, "/costNanos")).collect();
            assert_eq!(costs, ["5", "4", "3", "2", "1"], "{charged} in pages of {limit}");
        }
        let csv = api
            .get(&format!("/v1/calls/export?{}", &charged[1..]))
            .await
            .text();
        assert_eq!(csv.lines().count(), 6, "{csv}");
    }
    let (sums, _) = usage(&api, &format!("from={}&to={}", end(1), end(9))).await;
    assert_eq!(sums, Sums::new(), "they are charged to no other day");
}
