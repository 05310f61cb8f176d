//! Dedicated connections, on which changes of money wait for confirmation: an account that hammers leaves other
//! accounts their share.

use crate::fixture::ADMIN;
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Caller, Cli, Redis, Seed, Wire, words};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Changes that the hammering account has in flight all the time.
const IN_FLIGHT: usize = 300;
/// Changes of the other account, one after the other.
const IN_TURN: usize = 4;
/// Maximum changes of the hammering account done during one change of the other: those in its share of the connections,
/// for as long as a request takes. One queue for all would let nearly all of [`IN_FLIGHT`] pass.
const PASSED_MAX: usize = 120;

/// A caller of an account with money, in live mode.
async fn rich(redis: &Redis, seed: &Seed, admin: &Admin) -> Caller {
    let account = seed.account("enterprise").await;
    let caller = admin.caller(&account.api_key(Mode::Live).await);
    let made = caller.post("/v1/wallets/create", json!({ "botId": "bot" })).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let deposit = format!(
        "deposit --account {} --wallet user --amount 1000 --reference r",
        account.id
    );
    let deposit = words(&deposit);
    let _ = Cli::new(ADMIN, redis.url()).json(&deposit);
    caller
}

async fn transfer(caller: &Caller) -> u16 {
    let body = json!({ "from": "user", "to": "bot", "amount": "0.000001" });
    caller.post("/v1/wallet/transfer", body).await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_hammers_leaves_the_others_their_turns() {
    // Every reply of the store is as slow as with a slow disk.
    let redis = Redis::start_durable();
    let wire = Wire::to_port(redis.port());
    let seed = Seed::new(&redis.store()).await;
    let admin = Admin::start(
        AdminOptions::new(ADMIN, wire.redis_url())
            .env("TOLLGATE_STORE__DURABILITY", "aof")
            .env("TOLLGATE_STORE__TIMEOUT_MS", "30000"),
    );
    let (hammering, other) = (
        rich(&redis, &seed, &admin).await,
        rich(&redis, &seed, &admin).await,
    );
    wire.delay_replies(Duration::from_millis(40));
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (caller, stop, done) = (hammering.clone(), Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    assert_eq!(transfer(&caller).await, 200);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    harness::until("the hammering to begin", async || {
        done.load(Ordering::SeqCst) > 50
    })
    .await;
    let mut passed = Vec::new();
    for _ in 0..IN_TURN {
        let before = done.load(Ordering::SeqCst);
        assert_eq!(transfer(&other).await, 200);
        passed.push(done.load(Ordering::SeqCst) - before);
    }
    stop.store(true, Ordering::SeqCst);
    wire.heal();
    for task in tasks {
        task.await.unwrap();
    }
    println!("changes of the hammering account during one of the other's: {passed:?}");
    passed.sort_unstable();
    assert!(passed[IN_TURN / 2] <= PASSED_MAX, "{passed:?}");
}
