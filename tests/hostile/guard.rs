//! The guard behind the budgets: an account that fills the store within its budgets may make no more records, before
//! the store is full for everybody (decision D71).

use crate::fixture::{Fixture, Setup};
use domain::mode::Mode;
use harness::{chat_body, eventually, open_cap};
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

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
