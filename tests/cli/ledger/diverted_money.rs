//! Money that was sent to one wallet and led to another by a change of the records on its way. All balances are right,
//! and no money is missing.

use super::check;
use super::fixture::Fixture;
use harness::{Admin, AdminOptions, Seed};
use serde_json::{Value, json};
use std::time::Duration;

/// Asserts that the check finds `invariant`, and only that, in a record whose name contains `record`.
#[track_caller]
fn finds(fixture: &Fixture, invariant: &str, record: &str) {
    let found = fixture.cli.json_exit(&["ledger", "check"], 1);
    let violations = found["violations"].as_array().expect("a list");
    for one in violations {
        assert_eq!(one["invariant"], invariant, "{found}");
    }
    let named = violations
        .iter()
        .any(|one| one["records"].to_string().contains(record));
    assert!(named, "{record}: {found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_escrow_that_was_led_to_another_account_is_found() {
    let fixture = Fixture::build().await;
    let [payer, payee] = &fixture.tenants;
    let thief = Seed::new(&fixture.store).await.account("enterprise").await;
    let number = fixture.escrows.funded;
    let (record, text) = (payer.account.keys.live().escrow(number), number.to_string());
    let redis = &fixture.redis;
    check(&fixture, &["--trail"], 0);
    let _: i64 = redis.command(&["HSET", &record, "to_account", &thief.id, "to_owner", "user"]);
    let _: i64 = redis.command(&["ZREM", &payee.account.keys.live().escrows(), &text]);
    let _: i64 = redis.command(&["ZADD", &thief.keys.live().escrows(), &text, &text]);
    finds(&fixture, "escrow-state", &record);
    let of_thief = fixture
        .admin
        .as_ref()
        .expect("a server")
        .caller(&thief.api_key(domain::mode::Mode::Live).await);
    let released = of_thief
        .post("/v1/escrow/release", json!({ "escrowId": number }))
        .await;
    let released = match released.status {
        200 => released,
        _ => {
            payer
                .live
                .post("/v1/escrow/release", json!({ "escrowId": number }))
                .await
        }
    };
    assert_eq!(released.status, 200, "{}", released.text());
    finds(&fixture, "escrow-state", &record);
    let found = fixture
        .cli
        .json_exit(&["ledger", "check", "--trail"], 1)
        .to_string();
    for word in ["\"trail\"", "the wallet is"] {
        assert!(found.contains(word), "{word}: {found}");
    }
}

/// A row that waits is led to another wallet of the same account, or to another account; then it is delivered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_was_led_elsewhere_is_found_while_it_waits_and_afterwards() {
    for to_other_account in [false, true] {
        let mut fixture = Fixture::build().await;
        let (bucket, row) = fixture.leave_in_transit().await;
        check(&fixture, &["--trail"], 0);
        let thief = Seed::new(&fixture.store).await.account("enterprise").await;
        let text: String = fixture.redis.command(&["HGET", &bucket.transit(), &row]);
        let mut changed: Value = serde_json::from_str(&text).expect("a row");
        if to_other_account {
            changed["to_account"] = json!(thief.id);
        } else {
            let bob = fixture.tenants[1].wallets[2];
            changed["to_owner"] = json!("bob");
            changed["to_wallet"] = json!(bob);
            let audit = changed["audit"].as_str().expect("an entry").to_owned();
            let ann = fixture.tenants[1].wallets[1];
            changed["audit"] = json!(audit.replace(&ann.to_string(), &bob.to_string()));
        }
        let changed = changed.to_string();
        let _: i64 = fixture
            .redis
            .command(&["HSET", &bucket.transit(), &row, &changed]);
        let from = fixture.tenants[0].wallets[1].to_string();
        finds(&fixture, "transit", &from);
        let options = AdminOptions::new(env!("CARGO_BIN_EXE_tollgate-admin"), fixture.redis.url());
        fixture.admin = Some(Admin::start(options));
        while fixture.redis.command::<i64>(&["HLEN", &bucket.transit()]) > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        finds(&fixture, "transit", &from);
    }
}
