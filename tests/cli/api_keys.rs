//! API keys: issued once, stored as a hash, listed, revoked (decision D8).

use crate::{account, document, ready, written};
use crypto::sha256_hex;
use domain::mode::Mode;
use harness::{Cli, Redis, assert_fields, words};
use serde_json::{Value, json};
use store::keys::{self, AccountKeys};

fn create(cli: &Cli, account: &str, more: &[&str]) -> Value {
    let args: Vec<&str> = ["api-key", "create", "--account", account]
        .iter()
        .chain(more)
        .copied()
        .collect();
    cli.json(&args)
}

#[test]
fn every_form_of_key_is_issued() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let id = account(&cli);
    for (mode, prefix, start) in [
        ("live", "svc", "svc_live_"),
        ("test", "svc", "svc_test_"),
        ("live", "sk_service", "sk_service_live_"),
        ("test", "sk_service", "sk_service_test_"),
    ] {
        let made = create(&cli, &id, &["--mode", mode, "--prefix", prefix]);
        let key = made["key"].as_str().unwrap();
        assert!(
            key.strip_prefix(start).is_some_and(|rest| rest.len() == 64),
            "{made}"
        );
        assert!(crypto::api_key::is_well_formed(key));
        let lookup = keys::api_key_lookup(&sha256_hex(key.as_bytes()));
        let owner: String = redis.command(&["GET", &lookup]);
        assert_eq!(owner, format!("{id} {}", made["keyId"].as_str().unwrap()));
        assert_eq!(redis.command::<i64>(&["PTTL", &lookup]), -1, "the look-up lasts");
        assert_eq!(made["permissions"], json!(["read", "write"]), "the default");
    }
    assert_eq!(cli.json(&["api-key", "list", "--account", &id])["total"], 4);
}

#[test]
fn limits_of_a_key_are_kept_and_the_secret_is_not() {
    let redis = Redis::start_durable();
    let cli = ready(&redis);
    let id = account(&cli);
    let limits = "--mode live --permissions approve,read,read --allow-ip 10.1.2.3/8 --allow-ip ::1 \
        --expires 2099-01-01T01:00:00+01:00";
    let made = create(&cli, &id, &words(limits));
    let list = cli.json(&["api-key", "list", "--account", &id]);
    let listed = &list["apiKeys"][0];
    assert_eq!(listed["permissions"], json!(["read", "approve"]));
    assert_eq!(listed["allowIps"], json!(["10.0.0.0/8", "::1/128"]));
    assert_fields!(listed, { "expiresAt": "2099-01-01T00:00:00.000Z", "status": "active", "mode": "live" });
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with(listed["prefix"].as_str().unwrap()) && !list.to_string().contains(key));
    let written = written(&redis);
    assert!(
        written.contains(&sha256_hex(key.as_bytes())) && !written.contains(key),
        "only the hash is stored"
    );
}

#[test]
fn a_key_is_revoked_once() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let (id, other) = (account(&cli), account(&cli));
    let key = create(&cli, &id, &["--mode", "test"])["keyId"]
        .as_str()
        .unwrap()
        .to_owned();
    let revoke = |account: &str, key: &str, code| {
        document(
            &cli.run(&["api-key", "revoke", "--account", account, "--key", key, "--json"]),
            code,
        )
    };
    assert_fields!(revoke(&other, &key, 1), { "code": "NOT_FOUND" }, "another account's key");
    assert_eq!(revoke(&id, "key_none", 1)["code"], "NOT_FOUND");
    assert_eq!(revoke(&id, &key, 0)["status"], "revoked");
    assert_eq!(revoke(&id, &key, 1)["code"], "NOT_FOUND");
    let listed = &cli.json(&["api-key", "list", "--account", &id])["apiKeys"][0];
    assert_eq!(listed["status"], "revoked");
    let audit = AccountKeys::new(&id).in_mode(Mode::Test).audit();
    let entries: Vec<String> = redis.command(&["LRANGE", &audit, "0", "-1"]);
    assert!(
        entries[0].starts_with("1 ") && entries[0].contains("\"api_key.created\""),
        "{entries:?}"
    );
    assert!(
        entries[1].starts_with("2 ") && entries[1].contains("\"api_key.revoked\""),
        "{entries:?}"
    );
    assert_eq!(entries.len(), 2);
}
