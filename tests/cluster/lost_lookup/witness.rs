//! The witness of an account, a copy of its version on another master: it is lost with that master, and the account
//! loses nothing. The next change writes it again, so that a server that never saw the account notices when the
//! account's own master is lost.

use super::lose;
use crate::deposits::Depositor;
use crate::fixture::{ADMIN, Fixture, MASTERS, SOON, accept};
use domain::mode::Mode;
use harness::{Cli, SeedAccount, eventually};
use serde_json::{Value, json};
use store::connection::witness_of;
use store::keys::Bucket;

use super::fixture::holder;

/// Maximum number of accounts made until one has its witness on the wanted master.
const TRIES: usize = 50;

fn witness_key(account: &SeedAccount) -> String {
    witness_of(Bucket::from_account(&account.id)).witnessed()
}

/// An account on one master whose witness is on another.
async fn witnessed_account(fixture: &Fixture, own: usize, witness: usize) -> SeedAccount {
    for _ in 0..TRIES {
        let account = fixture.account_on(own).await;
        if holder(fixture, &witness_key(&account)) == witness {
            return account;
        }
    }
    panic!("no account on {own} with its witness on {witness}");
}

/// The account's version in its record, and in its witness.
async fn versions(fixture: &Fixture, account: &SeedAccount) -> (String, String) {
    let fields = redis::cmd("HMGET")
        .arg(account.keys.record())
        .arg(&["generation", "version"])
        .clone();
    let witness = redis::cmd("HGET")
        .arg(witness_key(account))
        .arg(&account.id)
        .clone();
    eventually("versions", SOON, async || {
        let record: Vec<String> = fixture.store.command(&fields).await.ok()?;
        let witness: Option<String> = fixture.store.command(&witness).await.ok()?;
        Some((record.join(" "), witness.unwrap_or_default()))
    })
    .await
}

fn check(fixture: &Fixture) -> (Option<i32>, Value) {
    let output = Cli::new(ADMIN, fixture.cluster.url()).run(&["ledger", "check", "--json"]);
    (
        output.code,
        serde_json::from_str(&output.stdout).expect("a document"),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_lost_witness_loses_nothing_and_is_written_again() {
    let fixture = Fixture::start(1).await;
    let own = (fixture.home() + 1) % MASTERS;
    let witness = (fixture.home() + 2) % MASTERS;
    let account = witnessed_account(&fixture, own, witness).await;
    let key = account.api_key(Mode::Test).await;
    let (safe, quick) = (fixture.admin("auto"), fixture.admin("async"));
    let depositor = Depositor {
        account: account.clone(),
        caller: safe.caller(&key),
    };
    depositor.must_deposit("before").await;
    let replica = fixture.cluster.replica_of(witness);
    fixture.cluster.wait_in_step(replica);
    let (before, witnessed) = versions(&fixture, &account).await;
    assert_eq!(before, witnessed);

    // The replica of the witness does not receive the account's version after this deposit.
    fixture.cluster.cut_off(replica);
    depositor.must_deposit("acknowledged").await;
    lose(&fixture, &safe, witness).await;
    let (now, witnessed) = versions(&fixture, &account).await;
    assert_eq!(witnessed, before, "the witness lost the last change");
    assert_ne!(now, before, "and the account did not");
    let young = fixture.admin("auto");
    for server in [&safe, &young] {
        let reply = server.caller(&key).get("/v1/wallet").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.json()["user_wallet"]["usdc"], json!(2), "{}", reply.text());
    }
    let (code, document) = check(&fixture);
    assert_eq!(code, Some(0), "{document}");

    // The next change writes the witness, which shows what the account loses from now on.
    depositor.must_deposit("next").await;
    let (now, witnessed) = versions(&fixture, &account).await;
    assert_eq!(now, witnessed);
    let replica = fixture.cluster.replica_of(own);
    fixture.cluster.wait_in_step(replica);
    fixture.cluster.cut_off(replica);
    let hasty = Depositor {
        account: account.clone(),
        caller: quick.caller(&key),
    };
    hasty.must_deposit("lost").await;
    lose(&fixture, &safe, own).await;
    let (_, document) = check(&fixture);
    let violations = document["violations"].as_array().expect("a list");
    let named = violations.iter().any(|violation| {
        violation["invariant"] == json!("versions") && violation["records"].to_string().contains(&account.id)
    });
    assert!(named, "{document}");
    let stranger = fixture.admin("auto");
    let reply = stranger.caller(&key).get("/v1/wallet").await;
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(stranger.logs().contains("lost writes"), "{}", stranger.logs());

    accept(&fixture, &account);
    for (reference, balance) in [("next", 3), ("lost", 4), ("lost", 4)] {
        depositor.must_deposit(reference).await;
        assert_eq!(depositor.balance().await, json!(balance), "{reference}");
    }
}
