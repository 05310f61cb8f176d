//! The guard behind the budgets: an account that fills the store within its budgets may make no more records, before
//! the store is full for everybody (decision D71).

use crate::fixture::{Fixture, Setup};
use domain::mode::Mode;
use futures::{StreamExt, stream};
use harness::{Caller, chat_body, eventually, open_cap};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
/// Spends of a tenant of an honest size: 2 MB.
const HONEST_SPENDS: u64 = 700;
/// Changes with short audit lines: more than half of those with which the store would be full.
const SHORT_LINES: u64 = 5_500;
/// Changes with 8.4 KB of audit line each: 63 MB.
const LONG_LINES: u64 = 7_500;
/// Agents with 8 KB of description each: 55 MB.
const AGENTS: u64 = 6_000;
/// Transfers with 2 KB of memo in each of two transactions: 60 MB.
const TRANSFERS: u64 = 12_000;

/// A plan without limits, the default budgets, a small store: spends with 16 kB of metadata, until the account that
/// fills the store is refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_fills_the_store_is_refused_before_it_is_full() {
    filled(false).await;
}

/// The same without an archive.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_fills_a_store_without_archive_is_refused_before_it_is_full() {
    filled(true).await;
}

async fn filled(no_archive: bool) {
    let setup = Setup {
        megabytes: 64,
        no_archive,
        settings: vec![("LIMITS__GUARD_SHARE", "0.4".to_owned())],
        ..Setup::default()
    };
    let fixture = setup.start().await;
    let caller = fixture.management(Mode::Live).await;
    let policy = open_cap();
    let (agent, calls) = fixture.agent("bot", policy).await;
    let metadata = json!({ "note": "x".repeat(16_000) });
    let spend = async || {
        let body = json!({ "agent": "bot", "amount": "0.01", "metadata": metadata });
        caller.post("/v1/spend", body).await
    };
    let answers = fixture.attack(6_000, async |_| spend().await).await;
    Fixture::only(&answers, &[200, 429]);
    assert!(answers[&429] > 1_000, "{answers:?}");
    let used = fixture.redis.memory_used();
    assert!(used < 60 << 20, "{used}");
    // The attacker's calls are denied as well, with the reason; calls under way and protective changes continue.
    let denied = calls.chat(chat_body("gpt-4o-mini", "hello")).await;
    assert_eq!(denied.status, 429, "{denied:?}");
    assert!(
        denied.text().contains("uses far more of it than others"),
        "{denied:?}"
    );
    assert_eq!(caller.get("/v1/intents?limit=1").await.status, 200);
    let reply = caller.send("POST", "/v1/agents/bot/freeze", &[], "").await;
    assert_eq!(reply.status, 200);
    assert_eq!(fixture.admin.metric("tollgate_admin_refused_accounts"), Some(1));
    // With room again the refusal ends by itself.
    let _: String = fixture.redis.command(&["CONFIG", "SET", "maxmemory", "512mb"]);
    agent.frozen(false).await;
    let free = async || (spend().await.status == 200).then_some(());
    eventually("the attacker may go on", SOON, free).await;
    let called = async || {
        let reply = calls.chat(chat_body("gpt-4o-mini", "hello")).await;
        (reply.status == 200).then_some(())
    };
    eventually("its calls, too", SOON, called).await;
    // A list that the edge cannot read refuses nobody once it has expired: see `shared/store/src/account/refused.rs`.
}

/// Changes with short audit lines, then as many with 8 KB of text each: most places of the trail have short lines.
#[tokio::test(flavor = "multi_thread")]
async fn long_audit_texts_behind_short_ones() {
    let setup = Setup {
        megabytes: 64,
        settings: vec![
            ("LIMITS__GUARD_SHARE", "0.3".to_owned()),
            // Only the guard is left: nothing is archived.
            ("AUDIT__ARCHIVE_AFTER_ENTRIES", "1000000".to_owned()),
        ],
        ..Setup::default()
    };
    let fixture = setup.start().await;
    honest_tenants(&fixture).await;
    let caller = fixture.management(Mode::Live).await;
    let made = caller.post("/v1/agents", json!({ "name": "bot" })).await;
    let path = format!("/v1/agents/{}", made.json()["agent"]["id"].as_str().unwrap());
    let text = "\u{1f600}".repeat(1_990);
    let answers = fixture
        .attack(SHORT_LINES + LONG_LINES, async |at| {
            let text = if at < SHORT_LINES { "" } else { &text };
            let body = json!({ "description": format!("{at}{text}") });
            caller.patch(&path, body).await
        })
        .await;
    assert_refused(&fixture, &answers, 1_000);
}

/// Agents with 8 KB of description each: the entries are archived, the descriptions stay.
#[tokio::test(flavor = "multi_thread")]
async fn long_texts_of_agents() {
    let fixture = nearly_full().await;
    let caller = fixture.management(Mode::Live).await;
    let text = "\u{1f600}".repeat(1_990);
    let answers = fixture
        .attack(AGENTS, async |at| {
            let body = json!({ "name": format!("bot {at}"), "description": text });
            caller.post("/v1/agents", body).await
        })
        .await;
    assert_refused(&fixture, &answers, 500);
}

/// Transfers between two wallets, with 2 KB of memo in each of their two transactions: those stay as well.
#[tokio::test(flavor = "multi_thread")]
async fn long_texts_of_transactions() {
    let fixture = nearly_full().await;
    let caller = fixture.management(Mode::Test).await;
    let deposit = json!({ "wallet": "user", "amount": 1, "reference": "start" });
    assert_eq!(caller.post("/v1/wallet/deposits", deposit).await.status, 200);
    let made = json!({ "botId": "purse" });
    assert_eq!(caller.post("/v1/wallets/create", made).await.status, 200);
    let memo = "\u{1f600}".repeat(500);
    let answers = fixture
        .attack(TRANSFERS, async |_| {
            let body = json!({ "from": "user", "to": "purse", "amount": "0.000000001", "memo": memo });
            caller.post("/v1/wallets/transfer", body).await
        })
        .await;
    assert_refused(&fixture, &answers, 500);
}

/// A store of which the guard refuses large accounts, whose median is an honest tenant's size. Entries are archived.
async fn nearly_full() -> Fixture {
    let setup = Setup {
        megabytes: 64,
        settings: vec![("LIMITS__GUARD_SHARE", "0.3".to_owned())],
        ..Setup::default()
    };
    let fixture = setup.start().await;
    honest_tenants(&fixture).await;
    fixture
}

/// Makes tenants of an honest size, so that the attacker is not far above the median whatever is counted of it.
async fn honest_tenants(fixture: &Fixture) {
    for _ in 0..2 {
        let account = fixture.seed.account("unlimited").await;
        let caller = Caller::new(&fixture.admin.url(), &account.api_key(Mode::Live).await);
        assert_eq!(caller.post("/v1/policies/bot", json!({})).await.status, 200);
        let spends =
            (0..HONEST_SPENDS).map(|_| caller.post("/v1/spend", json!({ "agent": "bot", "amount": "0.01" })));
        let spent: Vec<_> = stream::iter(spends).buffer_unordered(16).collect().await;
        assert!(spent.iter().all(|reply| reply.status == 200));
    }
}

/// Asserts that the attacker alone was refused, at least `least` times, and the store is not full.
fn assert_refused(fixture: &Fixture, answers: &BTreeMap<u16, u64>, least: u64) {
    Fixture::only(answers, &[200, 429]);
    let refused = answers.get(&429).copied().unwrap_or(0);
    assert!(refused > least, "{answers:?}");
    let used = fixture.redis.memory_used();
    assert!(used < 60 << 20, "{used}");
    assert_eq!(fixture.admin.metric("tollgate_admin_refused_accounts"), Some(1));
}
