//! Blocked addresses: one form, one list, and no lock-out by accident (decision D11).

use crate::{document, ready, refused};
use harness::{Cli, Redis, assert_fields};
use serde_json::{Value, json};
use store::keys;

fn ip(cli: &Cli, args: &[&str]) -> Value {
    cli.json(&[&["ip"], args].concat())
}

fn ranges(list: &Value) -> Vec<&str> {
    let blocked = list["blocked"].as_array().unwrap();
    assert_eq!(list["total"], json!(blocked.len()));
    blocked
        .iter()
        .map(|entry| entry["range"].as_str().unwrap())
        .collect()
}

#[test]
fn the_list_is_canonical_and_sorted_and_each_command_prints_it() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let empty = ip(&cli, &["list"]);
    assert_eq!(empty, json!({ "blocked": [], "total": 0 }));
    assert!(cli.run(&["ip", "list"]).stdout.contains("Nothing is blocked."));
    for range in [
        "2001:DB8:0:0::1/32",
        "203.0.113.77/24",
        "203.0.113.7",
        "::ffff:192.0.2.1",
        "::ffff:192.0.2.0/120",
        "::1",
    ] {
        assert_eq!(ip(&cli, &["block", range])["changed"], true, "{range}");
    }
    let list = ip(&cli, &["list"]);
    let expected = [
        "192.0.2.0/24",
        "192.0.2.1/32",
        "203.0.113.0/24",
        "203.0.113.7/32",
        "::1/128",
        "2001:db8::/32",
    ];
    assert_eq!(ranges(&list), expected);
    let entry = &list["blocked"][0];
    let since = domain::timestamp::ms_from_iso(entry["since"].as_str().unwrap()).unwrap();
    assert!(since.abs_diff(clock::now_ms()) < 60_000, "{entry}");
    assert_eq!(entry["reason"], Value::Null);
    // The same range in another form is the same range.
    let gone = ip(&cli, &["unblock", "192.0.2.1/32"]);
    assert_eq!((gone["changed"].clone(), ranges(&gone).len()), (json!(true), 5));
    let text = cli.run(&["ip", "unblock", "203.0.113.7/32"]).stdout;
    assert!(
        text.contains("no longer blocked") && text.contains("203.0.113.0/24, which contains it, is blocked"),
        "{text}"
    );
    assert!(text.contains("RANGE") && text.contains("2001:db8::/32"), "{text}");
    let never = ip(&cli, &["unblock", "198.51.100.1"]);
    assert_eq!(
        (never["changed"].clone(), ranges(&never).len()),
        (json!(false), 4)
    );
}

#[test]
fn blocking_twice_changes_nothing_but_a_reason() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let version = || redis.command::<String>(&["HGET", keys::BLOCKED, "version"]);
    let first = ip(&cli, &["block", "203.0.113.7", "--reason", "  scans =us 🦊 "]);
    let since = first["blocked"][0]["since"].clone();
    assert_eq!(first["blocked"][0]["reason"], "scans =us 🦊");
    let before = version();
    for args in [
        &["block", "203.0.113.7"][..],
        &["block", "203.0.113.7/32", "--reason", "scans =us 🦊"],
    ] {
        let again = ip(&cli, args);
        assert_fields!(again, { "changed": false, "blocked": first["blocked"] });
    }
    assert_eq!(version(), before, "servers need not read it again");
    let other = ip(&cli, &["block", "203.0.113.7", "--reason", "a customer asked"]);
    assert_eq!(other["changed"], true);
    assert_fields!(other, {
        "blocked": [{ "range": "203.0.113.7/32", "since": since, "reason": "a customer asked" }],
    });
    assert_ne!(version(), before);
}

#[test]
fn nonsense_and_everybody_are_refused() {
    let redis = Redis::start();
    let cli = ready(&redis);
    for range in [
        "0.0.0.0/0",
        "::/0",
        "::ffff:0:0/96",
        "9.9.9.9/0",
        "0.0.0.0/1",
        "9.9.9.9/7",
        "2000::/15",
    ] {
        let failed = refused(&cli, &["ip", "block", range], 2);
        assert_eq!(failed["code"], "USAGE", "{failed}");
        assert!(failed["error"].as_str().unwrap().contains("--force"), "{failed}");
    }
    let long = "x".repeat(201);
    for args in [
        &["block", "203.0.113.0/33"][..],
        &["block", "example.com"],
        &["block", "203.0.113"],
        &["block", ""],
        &["block"],
        &["unblock"],
        &["block", "203.0.113.7", "--reason", ""],
        &["block", "203.0.113.7", "--reason", "a\nb"],
        &["block", "203.0.113.7", "--reason", &long],
    ] {
        let failed = cli.run(&[&["ip"], args, &["--json"]].concat());
        assert_eq!(document(&failed, 2)["code"], "USAGE", "{args:?}");
    }
    assert_eq!(redis.command::<u64>(&["EXISTS", keys::BLOCKED]), 0);
    let forced = ip(&cli, &["block", "0.0.0.0/0", "--force"]);
    assert_eq!(ranges(&forced), ["0.0.0.0/0"]);
    for narrow in ["10.0.0.0/8", "2001::/16"] {
        assert_eq!(ip(&cli, &["block", narrow])["changed"], true, "{narrow}");
    }
}

#[test]
fn a_full_store_takes_a_block() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(ip(&cli, &["block", "203.0.113.7"])["changed"], true);
}
