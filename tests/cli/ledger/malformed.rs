//! Keys of another type, and values that are no numbers: each is a violation that names the key, and the check goes on.

use super::damage::{damage, each_is_found};
use super::fixture::Fixture;
use serde_json::Value;
use std::collections::BTreeMap;
use store::keys::STORE;

#[tokio::test]
async fn a_key_of_another_type_is_named() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let live = fixture.tenants[0].account.keys.live();
    let segments = live.intent_segments();
    each_is_found(
        &fixture,
        vec![
            damage(&segments, "SET {} x", &["intent"]),
            damage(live.audit_base(), "HSET {} seq x", &["audit-sequence"]),
        ],
    )
    .await;
    for key in [live.audit_hashes(), live.audit_base()] {
        let _: String = fixture.redis.command(&["SET", &key, "x"]);
        named(&fixture, &key);
        let _: i64 = fixture.redis.command(&["DEL", &key]);
    }
    let checked = fixture.cli.run(&["ledger", "check", "--trail"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

/// Asserts that both checks of the trail name the key.
#[track_caller]
fn named(fixture: &Fixture, key: &str) {
    let found = fixture.cli.json_exit(&["ledger", "check", "--trail"], 1);
    let violations = found["violations"].as_array().expect("a list");
    let of_trail = violations.iter().filter(|one| one["invariant"] == "trail");
    let records: Vec<&str> = of_trail.filter_map(|one| one["records"][0].as_str()).collect();
    assert_eq!(records, [key], "{found}");
    let account = fixture.tenants[0].account.id.as_str();
    let verdict = fixture
        .cli
        .json_exit(&["audit", "verify", "--account", account], 1);
    assert_eq!(verdict["ok"], false, "{verdict}");
    let problem = verdict["problem"].as_str().unwrap_or_default();
    assert!(problem.contains(key), "{key}: {verdict}");
    assert_eq!(verdict["firstBroken"], Value::Null, "{verdict}");
}

/// One key of each kind of name is replaced by one of another type: the check always reaches its end.
#[tokio::test]
async fn no_key_of_another_type_stops_the_check() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let account = fixture.tenants[0].account.id.as_str();
    let mut kinds = BTreeMap::new();
    for key in fixture.redis.command::<Vec<String>>(&["KEYS", "*"]) {
        // The store's own record is that of the ledger, without which nothing is checked.
        if key != STORE && (key.starts_with("tollgate/") || key.contains(account) || !key.contains("acct_")) {
            let name: String = key
                .replace(account, "")
                .chars()
                .filter(|c| !c.is_ascii_digit())
                .collect();
            let words = name.split('/').map(|word| match word.len() {
                0..20 => word,
                _ => "id",
            });
            kinds.entry(words.collect::<Vec<_>>().join("/")).or_insert(key);
        }
    }
    assert!(kinds.len() > 40, "{kinds:?}");
    for key in kinds.values() {
        let dump: Option<Vec<u8>> = fixture.redis.command(&["DUMP", key]);
        let Some(dump) = dump else {
            continue; // it has expired
        };
        let is_text = fixture.redis.command::<String>(&["TYPE", key]) == "string";
        let _: i64 = fixture.redis.command(&["DEL", key]);
        let _: redis::Value = match is_text {
            true => fixture.redis.command(&["RPUSH", key, "x"]),
            false => fixture.redis.command(&["SET", key, "x"]),
        };
        let output = fixture.cli.run(&["ledger", "check", "--trail", "--json"]);
        let found: Value = serde_json::from_str(&output.stdout).expect("a document");
        assert!(found["violations"].is_array(), "{key}: {output:?}");
        let mut restore = redis::cmd("RESTORE");
        restore.arg(key).arg(0).arg(dump).arg("REPLACE");
        let _: redis::Value = fixture.store.command(&restore).await.expect("an answer");
    }
}

/// The bytes of a name that is not UTF-8 are shown, so that the key can be found.
#[tokio::test]
async fn a_name_that_is_no_text_is_shown() {
    let redis = harness::Redis::start();
    let cli = crate::ready(&redis);
    let mut set = redis::cmd("SET");
    set.arg(&b"strange\xff\n"[..]).arg("x");
    let _: String = redis.store().command(&set).await.expect("an answer");
    let found = cli.json_exit(&["ledger", "check"], 1);
    assert_eq!(found["violations"][0]["records"][0], "strange\\xff\\n", "{found}");
}
