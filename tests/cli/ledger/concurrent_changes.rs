//! Counters that were changed by hand while calls and entries go on: the traffic does not hide them.

use super::check;
use super::fixture::{Fixture, settle};
use crate::document;
use harness::{Cli, SeedAgent, Store, Wire, assert_fields};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Open holds of the agent, beside those of its calls.
const HOLDS: usize = 2000;
/// Checks until one is conclusive.
const CHECKS_MAX: usize = 5;
/// Callers who move money at the same time.
const MOVING: usize = 3;

/// The agent `ann` of the first account, with a key.
async fn caller(fixture: &Fixture) -> (SeedAgent, String) {
    let agent = fixture.tenants[0].account.agent("ann");
    agent.provider_key("sk-test").await;
    let (key_id, _) = agent.virtual_key_with_id().await;
    (agent, key_id)
}

/// Makes a call of 2 USD that costs [`COST`](super::fixture::COST).
async fn call((agent, key_id): &(SeedAgent, String), store: &Store) {
    let hold = agent.open_hold(key_id, 2_000_000_000, Duration::from_secs(1000));
    settle(store, hold.await).await;
}

/// A task that runs until `stop` is set.
struct Beside {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Beside {
    /// Runs `step` again and again, with a pause.
    fn start<F: Future<Output = ()> + Send>(pause: Duration, step: impl Fn() -> F + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                step().await;
                tokio::time::sleep(pause).await;
            }
        });
        Self { stop, task }
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("the traffic");
    }
}

fn records(document: &Value) -> String {
    let violations = document["violations"].as_array().expect("a list");
    let records = violations.iter().map(|one| one["records"].to_string());
    records.collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_do_not_hide_counters_that_were_set_back() {
    let fixture = Fixture::build().await;
    call(&caller(&fixture).await, &fixture.store).await;
    let caller = fixture.tenants[0].live.clone();
    // An entry that charges nothing: the spend waits for approval.
    let entries = Beside::start(Duration::from_millis(40), move || {
        let caller = caller.clone();
        async move {
            let reply = caller
                .post("/v1/spend", json!({ "agent": "ann", "amount": 60 }))
                .await;
            assert_eq!(reply.status, 202, "{}", reply.text());
        }
    });
    check(&fixture, &["--trail"], 0);
    let set_back = fixture.set_counters_back();
    let found = fixture.cli.json_exit(&["ledger", "check", "--trail"], 1);
    let records = records(&found);
    for record in set_back {
        assert!(records.contains(&record), "{record}: {found}");
    }
    entries.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_do_not_hide_a_held_amount_that_was_changed() {
    let fixture = Fixture::build().await;
    let caller = caller(&fixture).await;
    // The account changes during each read, which takes long.
    for _ in 0..HOLDS {
        let _kept = caller.0.open_hold(&caller.1, 1, Duration::from_secs(1000)).await;
    }
    let mut calls = Vec::new();
    for _ in 0..4 {
        // A key has a rate.
        let (agent, store) = (caller.0.clone(), fixture.store.clone());
        let caller = (agent.clone(), agent.virtual_key_with_id().await.0);
        calls.push(Beside::start(Duration::from_millis(20), move || {
            let (caller, store) = (caller.clone(), store.clone());
            async move { call(&caller, &store).await }
        }));
    }
    check(&fixture, &[], 0);
    let agent = fixture.tenants[0].account.keys.live().agent("ann");
    let _: i64 = fixture.redis.command(&["HINCRBY", &agent, "held", "5"]);
    // On a busy machine calls begin during each read, and the check cannot decide. It never says that all is right.
    let inconclusive = 3;
    let mut output = fixture.cli.run(&["ledger", "check", "--json"]);
    for _ in 0..CHECKS_MAX {
        if output.code != Some(inconclusive) {
            break;
        }
        output = fixture.cli.run(&["ledger", "check", "--json"]);
    }
    let found = output.document(1);
    assert!(records(&found).contains(&format!("{agent} held")), "{found}");
    for calls in calls {
        calls.end().await;
    }
}

/// The commands that read a wallet reach the store one by one, and money moves between any two of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_whose_account_never_rests_is_read() {
    let fixture = Fixture::build().await;
    let tenant = &fixture.tenants[0];
    let mut moving = Vec::new();
    for _ in 0..MOVING {
        let caller = tenant.live.clone();
        moving.push(Beside::start(Duration::ZERO, move || {
            let caller = caller.clone();
            async move {
                for (from, to) in [("ann", "bob"), ("bob", "ann")] {
                    let transfer = json!({ "from": from, "to": to, "amount": "0.000000001" });
                    let reply = caller.post("/v1/wallet/transfer", transfer).await;
                    assert_eq!(reply.status, 200, "{}", reply.text());
                }
            }
        }));
    }
    let wire = Wire::to_port(fixture.redis.port());
    let wallet = tenant.account.keys.live().wallet("ann");
    wire.slice_requests(format!("HGETALL\r\n${}\r\n{wallet}\r\n", wallet.len()), 16);
    let cli = Cli::new(env!("CARGO_BIN_EXE_tollgate-admin"), wire.redis_url());
    let checked = cli.run(&["ledger", "check", "--json", "--account", &tenant.account.id]);
    for moving in moving {
        moving.end().await;
    }
    let checked = document(&checked, 0);
    assert_fields!(checked, { "ok": true, "inconclusive": [], "violations": [] });
}
