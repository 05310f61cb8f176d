//! Violations of policies: the first ten of an agent in a minute are reported one by one, further ones together
//! (decision D72), with any number of dispatchers, whenever one is killed. A dispatcher that is far behind delays
//! neither the archive nor other accounts.

use crate::fixture::{Fixture, Owner, SOON, accepting, quick, success, text, url};
use archive::Archive;
use clock::now_ms;
use domain::mode::Mode;
use harness::{Admin, Redis, SeedAccount, Store, Upstream, assert_fields, eventually, until};
use serde_json::{Value, json};
use settings::load_from;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use store::audit::chain::Chain;

const VIOLATION: &[&str] = &["policy.violation"];
const MINUTE_MS: u64 = 60_000;
/// Appends lines as scripts do, each with the next number, all in one step.
const APPEND: &str = "local seq = redis.call('HINCRBY', KEYS[1], 'live_audit_seq', #ARGV) - #ARGV \
    for at, line in ipairs(ARGV) do \
      redis.call('RPUSH', KEYS[2], string.format('%d %s', seq + at, line)) \
    end \
    return seq";

/// The start of a minute that ended long ago.
fn past_minute() -> u64 {
    (now_ms() / MINUTE_MS - 60) * MINUTE_MS
}

/// The line of a call that was denied.
fn denied(at_ms: u64, number: u64, agent: &str, reason: &str) -> String {
    format!(
        "{at_ms} D {reason} allow_01KAH3V9J8{number:016} 5 ,,,1:2:,,, acct_1 {agent} - vk_1 - gpt-4o-mini"
    )
}

/// Appends lines. Returns the number of the first one.
async fn append(store: &Store, account: &SeedAccount, lines: &[String]) -> u64 {
    let mut first = 0;
    for (at, lines) in lines.chunks(1000).enumerate() {
        let mut eval = redis::cmd("EVAL");
        eval.arg(APPEND).arg(2);
        eval.arg(account.keys.record()).arg(account.keys.live().audit());
        let seq: u64 = store.command(eval.arg(lines)).await.unwrap();
        first = if at == 0 { seq + 1 } else { first };
    }
    first
}

/// The events that a receiver received, by the entry that each names.
fn delivered(receiver: &Upstream) -> BTreeMap<u64, Value> {
    let mut events = BTreeMap::new();
    for request in receiver.requests() {
        let event = request.json();
        let seq = event["auditSeq"].as_u64().unwrap();
        assert_eq!(event["type"], json!("policy.violation"));
        if let Some(before) = events.insert(seq, event.clone()) {
            assert_eq!(before, event, "the same bytes each time");
        }
    }
    events
}

/// Number of violations that an event reports.
fn count(event: &Value) -> u64 {
    event.get("count").map_or(1, |count| count.as_u64().unwrap())
}

async fn wait_for_delivered(receiver: &Upstream, violations: u64) -> BTreeMap<u64, Value> {
    eventually("all violations reported", SOON, async || {
        let delivered = delivered(receiver);
        let sum: u64 = delivered.values().map(count).sum();
        assert!(sum <= violations, "{sum} of {violations}: some arrived twice");
        (sum == violations).then_some(delivered)
    })
    .await
}

fn metric(admin: &Admin, name: &str) -> u64 {
    admin.metric(name).unwrap_or(0)
}

/// Waits until no violations wait for the end of a minute, and checks that no key of them is left.
async fn nothing_waits(fixture: &Fixture, owner: &Owner) {
    let (keys, record) = (&owner.account.keys, owner.account.keys.record());
    until("nothing to wait", async || {
        let waiting: Option<String> = fixture.redis.command(&["HGET", &record, "live_violations"]);
        waiting.is_none()
    })
    .await;
    let prefix = format!("{}/live/violations*", keys.prefix());
    let left: Vec<String> = fixture.redis.command(&["KEYS", &prefix]);
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn ten_of_an_agent_one_by_one_and_the_rest_by_reason_at_the_minutes_end() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let receiver = accepting();
    let webhook = owner.register(&url(&receiver), VIOLATION).await;
    let start = past_minute();
    let mut lines = Vec::new();
    for n in 0..30 {
        lines.push(denied(start + n, n, "bot", "daily_limit"));
    }
    for n in 30..45 {
        let reason = if n % 2 == 0 { "frozen" } else { "daily_limit" };
        lines.push(denied(start + n, n, "two", reason));
    }
    let first = append(&fixture.store, &owner.account, &lines).await;
    // No other entry follows: the minute is over by the clock.
    let delivered = wait_for_delivered(&receiver, 45).await;
    let alone: Vec<u64> = delivered
        .iter()
        .filter(|(_, event)| event.get("count").is_none())
        .map(|(seq, _)| seq - first)
        .collect();
    let expected: Vec<u64> = (0..10).chain(30..40).collect();
    assert_eq!(alone, expected);
    let together: Vec<Value> = delivered
        .values()
        .filter(|event| event.get("count").is_some())
        .map(|event| {
            let seq = |name: &str| event[name].as_u64().unwrap() - first;
            json!([
                event["agentId"],
                event["reason"],
                event["count"],
                seq("firstAuditSeq"),
                seq("auditSeq"),
                event["source"]
            ])
        })
        .collect();
    assert_eq!(
        json!(together),
        json!([
            ["bot", "daily_limit", 20, 10, 29, "call"],
            ["two", "daily_limit", 2, 41, 43, "call"],
            ["two", "frozen", 3, 40, 44, "call"],
        ]),
        "{first}"
    );
    let iso = domain::timestamp::iso_from_ms;
    let bot = &delivered[&(first + 29)];
    assert_eq!(bot["firstAt"], json!(iso(start + 10)));
    assert_fields!(bot, { "lastAt": iso(start + 29), "timestamp": bot["lastAt"] });
    nothing_waits(&fixture, &owner).await;
    assert_eq!(owner.deliveries(&webhook).await.len(), 23);
    assert_eq!(
        metric(
            &fixture.admin,
            "tollgate_admin_webhook_violations_coalesced_total"
        ),
        25
    );
}

#[tokio::test]
async fn the_minute_that_goes_on_is_reported_when_it_is_over_also_by_another_server() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let receiver = accepting();
    owner.register(&url(&receiver), VIOLATION).await;
    // Not at the end of a minute, so that the minute lasts for a while.
    until("a minute with time left", async || now_ms() % MINUTE_MS < 45_000).await;
    let now = now_ms();
    let lines: Vec<String> = (0..15).map(|n| denied(now, n, "bot", "frozen")).collect();
    append(&fixture.store, &owner.account, &lines).await;
    wait_for_delivered(&receiver, 10).await;
    until("five to wait", async || {
        let name = "tollgate_admin_webhook_violations_coalesced_total";
        metric(&fixture.admin, name) == 5
    })
    .await;
    // Other events are delivered meanwhile.
    owner.freeze("other").await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(delivered(&receiver).len(), 10, "the minute is not over");
    // The minute ends while no server runs, and no further event comes.
    fixture.admin.kill9();
    let (record, counts) = (
        owner.account.keys.record(),
        owner.account.keys.live().violations(),
    );
    let waits: u64 = fixture.redis.command(&["HGET", &record, "live_violations"]);
    assert_eq!(waits, now / MINUTE_MS);
    let before = (waits - 1).to_string();
    let set = |key: &str, field: &str| fixture.redis.command::<i64>(&["HSET", key, field, &before]);
    set(&record, "live_violations");
    set(&counts, "/minute");
    let _second = fixture.another_admin();
    let delivered = wait_for_delivered(&receiver, 15).await;
    assert_eq!(delivered.len(), 11);
    nothing_waits(&fixture, &owner).await;
}

/// Three servers, one of them killed repeatedly: each violation is reported once.
#[tokio::test]
async fn the_minute_of_a_clock_that_was_ahead_is_over() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let receiver = accepting();
    owner.register(&url(&receiver), VIOLATION).await;
    let ahead = now_ms() + 10 * MINUTE_MS;
    let lines: Vec<String> = (0..30)
        .map(|n| denied(ahead + n, n, "bot", "daily_limit"))
        .collect();
    append(&fixture.store, &owner.account, &lines).await;
    // No other entry follows, and the clock reaches that minute only after this test.
    wait_for_delivered(&receiver, 30).await;
    nothing_waits(&fixture, &owner).await;
}

#[tokio::test]
async fn each_violation_is_reported_once_if_a_dispatcher_is_killed() {
    const ROUNDS: u64 = 6;
    const EACH: u64 = 200;
    let fixture = Fixture::start_with(Redis::start(), |options| {
        quick(options).env("TOLLGATE_AUDIT__SEAL_EVERY_MS", "20")
    })
    .await;
    let owner = fixture.owner().await;
    let receiver = accepting();
    owner.register(&url(&receiver), VIOLATION).await;
    let second = fixture.another_admin();
    let start = past_minute();
    for round in 0..ROUNDS {
        let mortal = fixture.another_admin();
        let lines: Vec<String> = (0..EACH)
            .map(|n| {
                let (agent, reason) = (
                    ["a", "b", "c"][(n % 3) as usize],
                    ["frozen", "daily_limit"][(n % 2) as usize],
                );
                // Every second round goes on with the minute of the one before.
                denied(start + round / 2 * MINUTE_MS + n, round * EACH + n, agent, reason)
            })
            .collect();
        let (early, late) = lines.split_at(EACH as usize / 2);
        append(&fixture.store, &owner.account, early).await;
        tokio::time::sleep(Duration::from_millis(7 * round)).await;
        mortal.kill9();
        append(&fixture.store, &owner.account, late).await;
    }
    wait_for_delivered(&receiver, ROUNDS * EACH).await;
    nothing_waits(&fixture, &owner).await;
    drop(second);
}

/// An attack by denials of one agent as fast as possible, with webhooks whose receivers are away.
#[tokio::test]
async fn a_storm_of_denials_makes_few_deliveries() {
    const DENIALS: u64 = 8_000;
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let closed = harness::ClosedPort::take();
    let dead = format!("http://{}/hook", closed.address());
    for _ in 0..20 {
        owner.register(&dead, VIOLATION).await;
    }
    let start = past_minute();
    let lines: Vec<String> = (0..DENIALS)
        .map(|n| denied(start + n, n, "bot", "daily_limit"))
        .collect();
    append(&fixture.store, &owner.account, &lines).await;
    let (keys, record) = (&owner.account.keys, owner.account.keys.record());
    until("all of it dispatched", async || {
        let found: Vec<Option<u64>> = fixture.redis.command(&[
            "HMGET",
            &record,
            "live_audit_seq",
            "live_dispatched",
            "live_violations",
        ]);
        found[0] == found[1] && found[2].is_none()
    })
    .await;
    let made = metric(&fixture.admin, "tollgate_admin_webhook_deliveries_total");
    assert!(made <= 20 * 12, "{made} deliveries of {DENIALS} denials");
    let deliveries: Vec<String> = fixture
        .redis
        .command(&["KEYS", &format!("{}/live/webhook/*/deliveries", keys.prefix())]);
    assert_eq!(deliveries.len(), 20);
}

fn archive_at(root: &Path) -> Archive {
    let root = root.display().to_string();
    let named = [("TOLLGATE_AUDIT__ARCHIVE".to_owned(), root)];
    Archive::from_settings(&load_from(None, named.into_iter()).unwrap().audit).unwrap()
}

#[tokio::test]
async fn the_archive_passes_a_dispatcher_that_is_far_behind_and_no_event_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("archive");
    let named = path.display().to_string();
    let fixture = Fixture::start_with(Redis::start(), |options| {
        quick(options)
            .env("TOLLGATE_AUDIT__ARCHIVE", named)
            .env("TOLLGATE_AUDIT__SEAL_EVERY_MS", "20")
    })
    .await;
    let (owner, other) = (fixture.owner().await, fixture.owner().await);
    let (receiver, calm) = (accepting(), accepting());
    owner.register(&url(&receiver), VIOLATION).await;
    let to_calm = other.register(&url(&calm), &["agent.frozen"]).await;
    fixture.admin.kill9();
    // All entries leave the store while no dispatcher runs.
    let start = past_minute();
    let agents: Vec<String> = (0..50).map(|n| format!("bot-{n}")).collect();
    let lines: Vec<String> = (0..600)
        .map(|n| denied(start + n, n, &agents[(n % 50) as usize], "frozen"))
        .collect();
    append(&fixture.store, &owner.account, &lines).await;
    let (archive, chain) = (
        archive_at(&path),
        Chain::new(&fixture.store, owner.account.keys.live()),
    );
    let last = chain.seal().await.unwrap().seq;
    let _place = (owner.account.id.as_str(), Mode::Live);
    let mut moved = 0;
    loop {
        match archive.move_segment(&chain, last, 170).await.unwrap() {
            0 => break,
            more => moved += more,
        }
    }
    assert_eq!(moved, last, "the archive waits for no webhook");

    // An unreachable archive stops nothing else.
    let away = root.path().join("away");
    std::fs::rename(&path, &away).unwrap();
    let second = fixture.another_admin();
    let other = Owner {
        caller: second.caller(&other.key),
        ..other
    };
    for _ in 0..5 {
        other.freeze("bot").await;
    }
    until("all of the other account", async || {
        other.deliveries_with(&to_calm, "status=delivered").await.1 == 5
    })
    .await;
    let mine = second.caller(&owner.key);
    let reply = mine.post("/v1/wallets/create", json!({ "botId": "new" })).await;
    success(&reply, 200);
    let newest = success(&mine.get("/v1/audit?limit=1").await, 200);
    assert!(newest["logs"][0]["seq"].as_u64().unwrap() > last, "{newest}");
    until("the archive missed", async || {
        metric(&second, "tollgate_admin_webhook_catch_ups_failed_total") > 0
    })
    .await;
    assert_eq!(receiver.arrived(), 0);

    std::fs::rename(&away, &path).unwrap();
    let delivered = wait_for_delivered(&receiver, 600).await;
    assert_eq!(delivered.len(), 50 * 10 + 50);
    let agents: BTreeSet<&str> = delivered.values().map(|event| text(event, "/agentId")).collect();
    assert_eq!(agents.len(), 50);
}
