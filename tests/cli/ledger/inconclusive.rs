//! An inconclusive check: money is missing, and as much moves meanwhile; or the trail cannot be read to its end.

use super::fixture::send_away;
use crate::ready;
use domain::mode::Mode;
use harness::{
    Admin, AdminOptions, Caller, Cli, Redis, RedisCluster, Seed, SeedAccount, Store, assert_fields, words,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::account::ModeField;
use store::keys::AccountKeys;

const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");

async fn done(caller: &Caller, path: &str, body: Value) -> Value {
    let reply = caller.post(path, body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// An account whose wallets `ann` and `bob` hold 100 USD each, its key and the number of the first.
async fn account(seed: &Seed, cli: &Cli, admin: &Admin) -> (SeedAccount, String, u64) {
    let account = seed.account("enterprise").await;
    let key = account.api_key(Mode::Live).await;
    let caller = admin.caller(&key);
    let mut number = 0;
    for bot in ["bob", "ann"] {
        let made = done(&caller, "/v1/wallets/create", json!({ "botId": bot })).await;
        number = made["wallet"]["walletId"].as_u64().expect("a number");
        let deposit = format!(
            "deposit --account {} --amount 100 --wallet {bot} --reference {bot}",
            account.id
        );
        let _ = cli.json(&words(&deposit));
    }
    (account, key, number)
}

/// On a cluster, a change within the possible difference between the clocks counts as made during the check.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inconclusive_findings_are_neither_right_nor_violations() {
    let cluster = RedisCluster::start(3);
    let store = Store::open(&cluster.url(), Duration::from_secs(5)).expect("the cluster");
    let seed = Seed::new(&store).await;
    let cli = Cli::new(BINARY, cluster.url());
    let options = AdminOptions::new(BINARY, cluster.url());
    let admin = Admin::start(options.clone());
    let (payer, _, from) = account(&seed, &cli, &admin).await;
    let (payee, key, to) = account(&seed, &cli, &admin).await;
    // No server delivers the 2 USD, and their row is lost.
    drop(admin);
    let row = send_away(&store, (&payer, from), (&payee, to)).await;
    let mut lose = redis::cmd("HDEL");
    lose.arg(payer.keys.bucket().transit()).arg(row);
    assert_eq!(store.command::<u64>(&lose).await.expect("an answer"), 1);

    let admin = Admin::start(options);
    let caller = admin.caller(&key);
    let move_money = async move || {
        for (from, to) in [("ann", "bob"), ("bob", "ann")] {
            let transfer = json!({ "from": from, "to": to, "amount": 5 });
            done(&caller, "/v1/wallet/transfer", transfer).await;
        }
    };
    // The check may begin before the task does.
    move_money().await;
    let stop = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&stop);
    let moving = tokio::spawn(async move {
        while !over.load(Ordering::Relaxed) {
            move_money().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    // The transfer that was sent and lost is certain; whether the sum of all money is right is not.
    let checked = cli.json_exit(&["ledger", "check"], 1);
    assert_fields!(checked, { "ok": false, "more": 0 });
    let violations = checked["violations"].as_array().expect("a list");
    let record = format!("transfer of 2000000000 nanos from wallet {from} to {to}");
    assert_eq!(violations.len(), 1, "{checked}");
    assert_fields!(violations[0], { "invariant": "transit", "records": [record] });
    assert_eq!(
        checked["inconclusive"][0]["invariant"], "conservation",
        "{checked}"
    );
    assert_eq!(
        checked["inconclusive"][0]["records"],
        json!(["live"]),
        "{checked}"
    );
    let said = cli.run(&["ledger", "check"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stdout.contains("Inconclusive: conservation (live): "),
        "{said:?}"
    );
    assert!(!said.stdout.contains("Everything holds."), "{said:?}");

    stop.store(true, Ordering::Relaxed);
    moving.await.expect("transfers");
    // After this, the last change is certain on all clocks.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let found = cli.json_exit(&["ledger", "check"], 1);
    assert_fields!(found, { "ok": false, "inconclusive": [] });
    let kinds = ["conservation", "transit"].map(|kind| json!(kind));
    let found = found["violations"].as_array().expect("a list");
    let found: Vec<Value> = found.iter().map(|one| one["invariant"].clone()).collect();
    assert_eq!(found, kinds);
}

/// An entry in a form that only a later release knows: what it changed is unknown, and nothing is known to be wrong.
#[test]
fn an_entry_of_a_later_release_leaves_the_check_undecided() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let keys = AccountKeys::new(&crate::account(&cli));
    assert_fields!(cli.json(&["ledger", "check", "--trail"]), { "ok": true });
    let field = ModeField::AuditSeq.name(Mode::Live);
    let seq: i64 = redis.command(&["HINCRBY", &keys.record(), &field, "1"]);
    let line = format!("{seq} 1795000000000 v99 A settled");
    let _: i64 = redis.command(&["RPUSH", &keys.live().audit(), &line]);
    assert_fields!(cli.json(&["ledger", "check"]), { "ok": true });
    let checked = cli.json_exit(&["ledger", "check", "--trail"], 3);
    assert_fields!(checked, { "ok": false, "violations": [], "more": 0 });
    assert_eq!(checked["inconclusive"][0]["invariant"], "trail", "{checked}");
    assert_eq!(
        checked["inconclusive"][0]["records"],
        json!([keys.live().audit()]),
        "{checked}"
    );
    let said = cli.run(&["ledger", "check", "--trail"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stdout.contains("Inconclusive: trail ("), "{said:?}");
    assert!(!said.stdout.contains("Everything holds."), "{said:?}");
}
