//! The check beside traffic: it raises no false alarm, and still finds damage.

use super::check;
use super::fixture::{Fixture, hold};
use domain::entry::HoldOutcome;
use domain::mode::Mode;
use domain::money::Nanos;
use harness::Caller;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use store::call::settle::{Settle, Settled};
use store::keys::USER;

/// Checks made beside the traffic.
const CHECKS: usize = 3;

/// Callers of the two modes and the wallets of the two accounts.
struct Traffic {
    callers: [Caller; 2],
    tests: [Caller; 2],
    wallets: [[u64; 3]; 2],
}

/// Moves money in every way until it is stopped.
async fn client(at: usize, traffic: Traffic, stop: Arc<AtomicBool>, done: Arc<AtomicU64>) {
    let Traffic {
        callers,
        tests,
        wallets,
    } = traffic;
    let (me, other) = (at % 2, (at + 1) % 2);
    let mut turn = at;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let caller = &callers[me];
        let to = wallets[turn % 2][turn % 3];
        let _moved = caller
            .post(
                "/v1/wallet/transfer",
                json!({ "from": "bob", "to": to, "amount": 0.01, "memo": "m".repeat(turn % 400 + 1) }),
            )
            .await;
        let _spent = caller
            .post(
                "/v1/spend",
                json!({ "agent": "ann", "amount": 0.001, "runId": "busy" }),
            )
            .await;
        let reference = format!("busy-{at}-{turn}");
        let deposit = json!({ "wallet": "ann", "amount": 0.5, "reference": reference, "pending": true });
        let _pending = tests[me].post("/v1/wallet/deposits", deposit).await;
        let reference = json!({ "reference": format!("busy-{at}-{}", turn - 1) });
        let _confirmed = tests[me].post("/v1/wallet/deposits/confirm", reference).await;
        let escrow =
            json!({ "fromWalletId": wallets[me][0], "toWalletId": wallets[other][1], "amount": 0.02 });
        let made = caller.post("/v1/escrow/create", escrow).await;
        let number = json!({ "escrowId": made.json()["escrow"]["id"] });
        let _funded = caller.post("/v1/escrow/fund", number.clone()).await;
        let verdict = ["release", "dispute"][turn % 2];
        let ended = callers[(me + turn / 2) % 2]
            .post(&format!("/v1/escrow/{verdict}"), number)
            .await;
        done.fetch_add(u64::from(ended.status == 200), Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traffic_raises_no_alarm_and_hides_none() {
    let fixture = Fixture::build().await;
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let traffic = || Traffic {
        callers: fixture.tenants.each_ref().map(|tenant| tenant.live.clone()),
        tests: fixture.tenants.each_ref().map(|tenant| tenant.test.clone()),
        wallets: fixture.tenants.each_ref().map(|tenant| tenant.wallets),
    };
    let clients = (0..4).map(|at| tokio::spawn(client(at, traffic(), stop.clone(), done.clone())));
    let clients: Vec<_> = clients.collect();
    let (store, account) = (fixture.store.clone(), fixture.tenants[1].account.clone());
    let over = stop.clone();
    let calls = tokio::spawn(async move {
        while !over.load(Ordering::Relaxed) {
            let name = hold(&account, Duration::from_secs(1000)).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            let settle = Settle {
                name,
                estimate: Nanos::new(2_000_000_000).unwrap(),
                cost: Nanos::new(1_000_000_001).unwrap(),
                outcome: HoldOutcome::Settled,
                extension: None,
                measured: None,
                ended_by: None,
            };
            assert!(matches!(
                settle.execute(&settle.name.keys(), None, &store).await.unwrap(),
                Settled::Done
            ));
        }
    });
    for _ in 0..CHECKS {
        check(&fixture, &["--trail"], 0);
        check(&fixture, &["--account", &fixture.tenants[0].account.id], 0);
    }
    let keys = &fixture.tenants[1].account.keys;
    // A wallet without traffic: in any other one the later transactions would include the addition.
    let still = keys.in_mode(Mode::Test).wallet(USER);
    let _: i64 = fixture.redis.command(&["HINCRBY", &still, "balance", "1"]);
    let found = check_found(&fixture);
    assert!(
        found.contains("wallet-balance") && found.contains(&still),
        "{found}"
    );
    let _: i64 = fixture.redis.command(&["HINCRBY", &still, "balance", "-1"]);
    // Counters of text, of an account with traffic.
    for field in ["live_text_bytes", "live_audit_text", "live_kept_text"] {
        let _: i64 = fixture.redis.command(&["HINCRBY", &keys.record(), field, "7"]);
        let found = check_found(&fixture);
        let record = format!("{} {field}", keys.record());
        assert!(found.contains("counters") && found.contains(&record), "{found}");
        let _: i64 = fixture.redis.command(&["HINCRBY", &keys.record(), field, "-7"]);
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    calls.await.unwrap();
    check(&fixture, &["--trail"], 0);
    assert!(done.load(Ordering::Relaxed) > 20, "there was traffic: {done:?}");
}

fn check_found(fixture: &Fixture) -> String {
    let output = fixture.cli.run(&["ledger", "check", "--json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    output.stdout
}
