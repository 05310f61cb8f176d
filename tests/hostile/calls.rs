//! Calls that are denied: they leave no run, and few lines in the audit log (decision D70), with and without a
//! reachable archive.

use crate::fixture::{Fixture, Setup};
use harness::{Caller, CapPolicy, Nanos, chat_body, open_cap};

const CALLS: u64 = 15_000;

fn denying() -> CapPolicy {
    CapPolicy {
        enabled: true,
        per_run: Some(Nanos::ZERO),
        ..CapPolicy::default()
    }
}

async fn deny_runs(no_archive: bool, settings: Vec<(&'static str, String)>) -> Fixture {
    let setup = Setup {
        megabytes: 12,
        no_archive,
        settings,
        ..Setup::default()
    };
    let fixture = setup.start().await;
    let (agent, calls) = fixture.agent("bot", denying()).await;
    let answers = fixture
        .attack(CALLS, async |at| {
            if at == 1_000 {
                agent.frozen(true).await;
            }
            let run = format!("{at}-{}", "r".repeat(190));
            calls
                .chat_with(&[("x-service-run-id", &run)], chat_body("gpt-4o-mini", "hello"))
                .await
        })
        .await;
    Fixture::only(&answers, &[402, 403, 429]);
    let runs: Vec<String> = fixture.redis.command(&["KEYS", "*/run/*"]);
    let mine = runs
        .iter()
        .filter(|key| key.contains(&fixture.attacker.id))
        .count();
    assert_eq!(mine, 0, "denials made runs");
    fixture
}

/// Denied calls, each with a run of its own, of an agent that is frozen meanwhile. Without D70 their runs alone fill
/// this store.
#[tokio::test(flavor = "multi_thread")]
async fn runs_of_denied_calls() {
    deny_runs(false, Vec::new()).await;
}

/// The same without an archive: the budget of audit entries ends the calls.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn runs_of_denied_calls_without_an_archive() {
    deny_runs(true, vec![("LIMITS__AUDIT_ENTRIES", "3000".to_owned())]).await;
}

async fn flood_over_the_rate(no_archive: bool) {
    let setup = Setup {
        megabytes: 5,
        no_archive,
        ..Setup::default()
    };
    let mut fixture = setup.start().await;
    fixture.attacker = fixture.seed.account("slow").await;
    let policy = open_cap();
    let (_agent, calls) = fixture.agent("bot", policy).await;
    let answers = fixture.attack(CALLS, async |_| chat(&calls).await).await;
    Fixture::only(&answers, &[200, 429]);
    assert!(answers[&200] <= 20, "{answers:?}");
}

/// A flood over the rate of a free key.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_over_the_rate() {
    flood_over_the_rate(false).await;
}

/// The same without an archive.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn a_flood_over_the_rate_without_an_archive() {
    flood_over_the_rate(true).await;
}

async fn chat(calls: &Caller) -> harness::Reply {
    calls.chat(chat_body("gpt-4o-mini", "hello")).await
}
