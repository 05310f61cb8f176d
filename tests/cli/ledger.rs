//! `ledger check`: finds nothing in a store with every kind of record, and names each record that is changed by hand.

mod concurrent_changes;
mod damage;
mod diverted_money;
mod fixture;
mod inconclusive;
mod malformed;
mod names;
mod no_archive;
mod policies;
mod traffic;
mod trail;
mod vanished_accounts;

use self::fixture::Fixture;
use crate::{account, document, ready, refused};
use harness::{Cli, Redis, RedisCluster, assert_fields, words};
use serde_json::{Value, json};

/// Runs the check, which must exit with `code`.
#[track_caller]
fn check(fixture: &Fixture, args: &[&str], code: i32) -> Value {
    let args = [&["ledger", "check", "--json"], args].concat();
    document(&fixture.cli.run(&args), code)
}

#[tokio::test]
async fn a_busy_store_is_in_order() {
    let mut fixture = Fixture::build().await;
    let whole = check(&fixture, &[], 0);
    assert_fields!(whole, { "ok": true, "violations": [], "more": 0 });
    assert!(whole["checked"].as_u64() > Some(300), "{whole}");
    fixture.leave_in_transit().await;
    check(&fixture, &[], 0);
    for tenant in &fixture.tenants {
        let one = check(&fixture, &["--account", &tenant.account.id], 0);
        assert!(one["checked"].as_u64() < whole["checked"].as_u64(), "{one}");
    }
}

#[test]
fn an_empty_store_is_in_order_and_an_account_must_exist() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let checked = cli.json(&["ledger", "check"]);
    assert_fields!(checked, { "ok": true, "passes": 1 });
    assert_fields!(cli.json(&["ledger", "check", "--trail"]), { "ok": true, "passes": 1 });
    let none = refused(&cli, &["ledger", "check", "--account", "acct_none"], 1);
    assert_eq!(none["code"], "NOT_FOUND");
    assert_eq!(cli.run(&["ledger", "check", "--account", "a/b"]).code, Some(2));
    let reported = cli.run(&["ledger", "check"]);
    assert_eq!(reported.code, Some(0));
    assert!(reported.stdout.contains("Everything holds."), "{reported:?}");
}

#[test]
fn every_server_of_a_cluster_is_checked() {
    let cluster = RedisCluster::start(3);
    let cli = Cli::new(env!("CARGO_BIN_EXE_tollgate-admin"), cluster.url());
    assert_eq!(cli.json(&["store", "init"])["ok"], true);
    for number in 0..6 {
        let id = account(&cli);
        let reference = format!("rail-{number}");
        let deposit = format!("deposit --account {id} --wallet user --amount 5 --reference");
        let deposit = words(&deposit);
        let _ = cli.json(&[&deposit[..], &[&reference]].concat());
    }
    let checked = cli.json(&["ledger", "check", "--trail"]);
    assert!(checked["checked"].as_u64() > Some(60), "{checked}");
    for node in cluster.nodes() {
        let keys: Vec<String> = node.command(&["KEYS", "*user-wallet"]);
        let Some(wallet) = keys.first() else { continue };
        let _: i64 = node.command(&["HINCRBY", wallet, "balance", "1"]);
        let found = cli.json_exit(&["ledger", "check"], 1);
        assert_eq!(found["violations"][0]["records"][0], json!(wallet), "{found}");
        let _: i64 = node.command(&["HINCRBY", wallet, "balance", "-1"]);
    }
}

#[test]
fn at_most_a_thousand_violations_are_listed() {
    let redis = Redis::start();
    let cli = ready(&redis);
    for n in 0..1100 {
        let _: String = redis.command(&["SET", &format!("strange/{n}"), "x"]);
    }
    let found = cli.json_exit(&["ledger", "check"], 1);
    assert_eq!(found["violations"].as_array().map(Vec::len), Some(1000));
    assert_fields!(found, { "more": 100, "ok": false });
    let reported = cli.run(&["ledger", "check"]);
    assert_eq!(reported.code, Some(1));
    for words in [
        "INVARIANT",
        "unknown-key",
        "strange/",
        "and 100 more",
        "1100 violation(s)",
    ] {
        assert!(reported.stdout.contains(words), "{words}");
    }
}
