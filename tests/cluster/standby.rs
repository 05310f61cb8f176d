//! A single server with a standby that takes over: acknowledged wallets are there, and no number is given twice.

use crate::fixture::ADMIN;
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Caller, Cli, Redis, Seed, Wire, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Wallets made of each kind before the standby is cut off, and after.
const EACH: usize = 3;
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes a wallet. Returns its number, if it was acknowledged.
async fn wallet(caller: &Caller, name: &str) -> Option<u64> {
    let reply = caller.post("/v1/wallets/create", json!({ "botId": name })).await;
    match reply.status {
        200 => reply.json()["wallet"]["walletId"].as_u64(),
        503 => None,
        _ => panic!("{name}: {}", reply.text()),
    }
}

async fn is_there(caller: &Caller, number: u64) -> bool {
    let reply = caller.get(&format!("/v1/wallets/{number}")).await;
    assert!(matches!(reply.status, 200 | 404), "{}", reply.text());
    reply.status == 200
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_takes_over_has_what_was_acknowledged() {
    let (server, standby) = (Redis::start(), Redis::start());
    let wire = Wire::to_port(server.port());
    let _: String = standby.command(&["REPLICAOF", "127.0.0.1", &server.port().to_string()]);
    let admin = |durability: &str| {
        let options = AdminOptions::new(ADMIN, wire.redis_url());
        Admin::start(
            options
                .env("TOLLGATE_STORE__DURABILITY", durability)
                .env("TOLLGATE_STORE__DURABILITY_TIMEOUT_MS", "700"),
        )
    };
    let account = Seed::new(&server.store()).await.account("enterprise").await;
    let key = account.api_key(Mode::Test).await;
    let (safe, quick) = (admin("replicas(1)"), admin("async"));
    let (careful, hasty) = (safe.caller(&key), quick.caller(&key));
    standby.wait_in_step_with(&server);
    let (mut kept, mut lost) = (Vec::new(), Vec::new());
    let mut tried = 0;
    until("wallets that the standby confirms", async || {
        tried += 1;
        kept.extend(wallet(&careful, &format!("kept-{tried}")).await);
        kept.len() == EACH
    })
    .await;

    // The standby receives nothing any more.
    let off = [
        "CONFIG",
        "SET",
        "masteruser",
        "nobody",
        "masterauth",
        "no password",
    ];
    let _: String = standby.command(&off);
    let _: u64 = server.command(&["CLIENT", "KILL", "TYPE", "REPLICA"]);
    for n in 0..EACH {
        assert_eq!(
            wallet(&careful, &format!("unheard-{n}")).await,
            None,
            "no standby confirms it"
        );
        lost.push(
            wallet(&hasty, &format!("lost-{n}"))
                .await
                .expect("acknowledged at once"),
        );
    }
    server.kill9();
    let _: String = standby.command(&["REPLICAOF", "NO", "ONE"]);
    wire.lead_to(standby.port());
    wire.cut();
    let cli = Cli::new(ADMIN, wire.redis_url());
    let accepted: Value = cli.json(&["store", "accept", "--account", &account.id]);
    assert_eq!(accepted["accepted"], 1, "{accepted}");
    until("an answer of the standby", async || {
        let reply = hasty.get("/v1/wallet?limit=1").await;
        tokio::time::sleep(PAUSE).await;
        reply.status == 200
    })
    .await;
    for number in &kept {
        assert!(
            is_there(&hasty, *number).await,
            "wallet {number} was acknowledged by replicas(1)"
        );
    }
    for number in &lost {
        assert!(
            !is_there(&hasty, *number).await,
            "wallet {number} was not on the standby"
        );
    }

    // A number that was returned names one wallet, also if its creation was lost.
    let mut given: BTreeSet<u64> = kept.iter().chain(&lost).copied().collect();
    for n in 0..4 * EACH {
        let number = wallet(&hasty, &format!("later-{n}")).await.expect("a wallet");
        assert!(given.insert(number), "wallet {number} was given twice");
    }
    let check = cli.json(&["ledger", "check"]);
    assert_eq!(check["ok"], json!(true), "{check}");
}
