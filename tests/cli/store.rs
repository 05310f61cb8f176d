//! The life of the ledger: init, check, accept (decisions D47, D52).

use crate::{account, cli, ready, refused};
use harness::{Redis, assert_fields};
use store::keys::AccountKeys;
use store::script::change::VERSION_STEP;

#[test]
fn nothing_works_on_a_store_without_a_ledger() {
    let redis = Redis::start();
    let cli = cli(&redis);
    for args in [
        &["account", "list"][..],
        &["account", "create", "--name", "x", "--plan", "free"],
        &["api-key", "create", "--account", "acct_1", "--mode", "live"],
        &["agent", "freeze", "--account", "acct_1", "--agent", "bot"],
        &["keys", "rotate"],
        &["prices", "show", "gpt-4o"],
        &["store", "check"],
        &["store", "accept"],
        &["holds", "list"],
    ] {
        let answer = refused(&cli, args, 1);
        assert_eq!(answer["code"], "STORE_NOT_INITIALISED", "{args:?}");
    }
    assert_eq!(redis.command::<u64>(&["DBSIZE"]), 0);
}

#[test]
fn init_is_done_once() {
    let redis = Redis::start();
    let cli = cli(&redis);
    let first = cli.json(&["store", "init"]);
    assert_fields!(first, { "ok": true, "created": true });
    assert_eq!(first["epoch"].as_str().map(str::len), Some(32));
    let second = cli.json(&["store", "init"]);
    assert_fields!(second, { "created": false, "epoch": first["epoch"] });
    let check = cli.json(&["store", "check"]);
    assert_fields!(check, { "ok": true, "epoch": first["epoch"], "appendOnly": false });
}

#[test]
fn init_refuses_a_store_that_holds_something() {
    let redis = Redis::start();
    redis.command::<String>(&["SET", "somebody", "else"]);
    assert_fields!(refused(&cli(&redis), &["store", "init"], 1), { "code": "STORE_UNFIT" });
    assert_eq!(redis.command::<u64>(&["DBSIZE"]), 1);
}

#[test]
fn init_refuses_an_unfit_store_and_leaves_it_empty() {
    let redis = Redis::start();
    let cli = cli(&redis);
    redis.command::<String>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert_fields!(refused(&cli, &["store", "init"], 1), { "code": "STORE_UNFIT" });
    assert_eq!(redis.command::<u64>(&["DBSIZE"]), 0);
    redis.command::<String>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert_fields!(refused(&cli, &["store", "check"], 1), { "code": "STORE_NOT_INITIALISED" });
    assert_fields!(cli.json(&["store", "init"]), { "created": true });
}

#[test]
fn a_store_that_evicts_is_unfit() {
    let redis = Redis::start();
    let cli = ready(&redis);
    redis.command::<String>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let answer = refused(&cli, &["store", "check"], 1);
    assert!(
        answer["error"].as_str().unwrap().contains("allkeys-lru"),
        "{answer}"
    );
}

#[test]
fn a_store_that_takes_no_writes_is_not_sound() {
    let redis = Redis::start();
    let cli = ready(&redis);
    for (name, value, sound, code) in [
        ("maxmemory", "1", "0", "OOM"),
        ("min-replicas-to-write", "1", "0", "NOREPLICAS"),
    ] {
        redis.command::<String>(&["CONFIG", "SET", name, value]);
        let answer = refused(&cli, &["store", "check"], 1);
        assert_fields!(answer, { "code": "STORE_TAKES_NO_WRITES" });
        assert!(answer["error"].as_str().unwrap().contains(code), "{answer}");
        redis.command::<String>(&["CONFIG", "SET", name, sound]);
        cli.json(&["store", "check"]);
    }
}

#[test]
fn accounts_that_lost_writes_are_named_and_a_missing_limit_is() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let check = cli.run(&["store", "check"]);
    assert!(check.stdout.contains("has no maxmemory"), "{check:?}");
    redis.command::<String>(&["CONFIG", "SET", "maxmemory", "1gb"]);
    assert_fields!(cli.json(&["store", "check"]), { "memoryLimited": true });
    redis.command::<String>(&["SET", "tollgate/refused", "acct_1 share\nacct_2 lost_writes 7"]);
    let answer = refused(&cli, &["store", "check"], 1);
    assert_fields!(answer, { "code": "ACCOUNTS_LOST_WRITES" });
    let said = answer["error"].as_str().unwrap();
    assert!(
        said.contains("acct_2") && said.contains("store accept --account"),
        "{said}"
    );
    assert!(!said.contains("acct_1"), "{said}");
}

#[test]
fn accept_raises_generation_and_version_and_is_audited() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let (one, other) = (account(&cli), account(&cli));
    let state = |id: &str| {
        let shown = cli.json(&["account", "show", "--account", id]);
        (
            shown["generation"].as_u64().unwrap(),
            shown["version"].as_u64().unwrap(),
        )
    };
    let before = state(&one);
    assert_eq!(cli.json(&["store", "accept", "--account", &one])["accepted"], 1);
    let after = state(&one);
    assert!(
        after.0 > before.0 && after.1 == before.1 + VERSION_STEP,
        "{before:?} {after:?}"
    );
    assert!(after.0 > 1_700_000_000_000, "the clock is in it: {after:?}");
    assert_eq!(state(&other), (1, 1), "the other account is untouched");

    assert_eq!(cli.json(&["store", "accept"])["accepted"], 2);
    assert!(state(&one).0 > after.0);
    let audit = AccountKeys::new(&one).live().audit();
    let entries: Vec<String> = redis.command(&["LRANGE", &audit, "0", "-1"]);
    let accepted = entries
        .iter()
        .filter(|entry| entry.contains("\"store.accepted\""))
        .count();
    assert_eq!((entries.len(), accepted), (3, 2), "{entries:?}");
    assert_fields!(refused(&cli, &["store", "accept", "--account", "acct_none"], 1), { "code": "NOT_FOUND" });
}
