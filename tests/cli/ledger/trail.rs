//! `ledger check --trail`: the trail reveals a change that was made consistently in all books, wherever its entries
//! are. A store without such a change is in order.

use super::check;
use super::fixture::{Fixture, hold, settle};
use archive::Archive;
use archive::intents::Age;
use archive::location::ArchiveLocation;
use domain::mode::Mode;
use harness::Cli;
use history::trail::Trail;
use serde_json::{Value, json};
use settings::load_from;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use store::account::ModeField;
use store::audit::chain::Chain;
use store::keys::{AccountKeys, Realm};

/// Returns the violations that `--trail` finds, with their records and details. All must be of the trail.
#[track_caller]
fn found(fixture: &Fixture) -> Vec<String> {
    check(fixture, &[], 0);
    let document = fixture.cli.json_exit(&["ledger", "check", "--trail"], 1);
    let violations = document["violations"].as_array().expect("a list").clone();
    let kinds: BTreeSet<_> = violations.iter().map(|one| one["invariant"].as_str()).collect();
    assert_eq!(kinds, BTreeSet::from([Some("trail")]), "{document}");
    violations.iter().map(Value::to_string).collect()
}

/// Asserts that each violation contains the words at its index.
#[track_caller]
fn says(violations: &[String], each: &[&[&str]]) {
    assert_eq!(violations.len(), each.len(), "{violations:?}");
    for (violation, words) in violations.iter().zip(each) {
        for word in *words {
            assert!(violation.contains(word), "{word}: {violation}");
        }
    }
}

/// A call of `ann` that cost [`COST`](super::fixture::COST).
async fn call(fixture: &Fixture) {
    let hold = hold(&fixture.tenants[0].account, Duration::from_secs(1000)).await;
    settle(&fixture.store, hold).await;
}

/// Adds 1,000 USD to a deposit, in its record, its transaction and the wallet.
async fn add_to_deposit(fixture: &Fixture) -> AccountKeys {
    let keys = fixture.tenants[0].account.keys.clone();
    let (table, mode) = (keys.in_mode(Mode::Test).transactions(), Mode::Test);
    let line: String = fixture.redis.command(&["HGET", &table, "1"]);
    assert!(line.contains(" 5000000000 5000000000 "), "{line}");
    let more = "1005000000000";
    let line = line.replace(" 5000000000 5000000000 ", &format!(" {more} {more} "));
    let _: i64 = fixture.redis.command(&["HSET", &table, "1", &line]);
    let _: i64 = fixture
        .redis
        .command(&["HSET", &keys.in_mode(mode).agent("ann"), "balance", more]);
    let deposit = keys.in_mode(mode).deposit("test-1");
    let fields = ["amount", more, "balance", more, "first_balance", more];
    let _: i64 = fixture
        .redis
        .command(&[&["HSET", deposit.as_str()][..], &fields].concat());
    keys
}

#[tokio::test]
async fn a_busy_store_is_in_order_with_its_trail() {
    let mut fixture = Fixture::build().await;
    call(&fixture).await;
    check(&fixture, &["--trail"], 0);
    let agent = json!({ "botId": "late" });
    super::fixture::ok(&fixture.tenants[1].live, "/v1/wallets/create", agent).await;
    assert_eq!(
        fixture.tenants[1].live.delete("/v1/agents/late").await.status,
        200
    );
    fixture.leave_in_transit().await;
    let plain = check(&fixture, &[], 0);
    let whole = check(&fixture, &["--trail"], 0);
    assert!(whole["checked"].as_u64() > plain["checked"].as_u64(), "{whole}");
    for tenant in &fixture.tenants {
        check(&fixture, &["--trail", "--account", &tenant.account.id], 0);
    }
}

#[tokio::test]
async fn money_that_was_added_to_all_books_is_found() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let keys = add_to_deposit(&fixture).await;
    let table = format!("{} 1\"", keys.in_mode(Mode::Test).transactions());
    let audit = keys.in_mode(Mode::Test).audit();
    let (new, old) = ("1005000000000", "5000000000");
    says(
        &found(&fixture),
        &[
            &["deposit txn_", &audit, new, &format!("say confirmed {old} nanos")],
            &[&table, &audit, new, &format!("the entry records {old}")],
        ],
    );
}

/// The last entry of the list is gone while its hash and the account's count are not: the check ends, and says so.
#[tokio::test]
async fn a_trail_without_its_last_entry_is_inconclusive() {
    let mut fixture = Fixture::build().await;
    call(&fixture).await;
    check(&fixture, &["--trail"], 0);
    fixture.admin = None;
    let keys = fixture.tenants[0].account.keys.clone();
    let _: String = fixture.redis.command(&["RPOP", &keys.live().audit()]);
    let output = fixture.cli.run(&["ledger", "check", "--trail", "--json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stdout.contains("the trail ends before entry"),
        "{output:?}"
    );
}

/// A deposit that was cancelled is opened again: the trail says that it was cancelled.
#[tokio::test]
async fn a_cancelled_deposit_that_is_open_again_is_found() {
    let mut fixture = Fixture::build().await;
    let id = fixture.tenants[0].account.id.clone();
    let of = ["--account", &id, "--mode", "test", "--reference", "gone"];
    let made = ["--wallet", "ann", "--amount", "3", "--pending"];
    fixture.cli.json(&[&["deposit"][..], &of, &made].concat());
    fixture.cli.json(&[&["deposit", "cancel"][..], &of].concat());
    check(&fixture, &["--trail"], 0);
    fixture.admin = None;
    let keys = fixture.tenants[0].account.keys.clone();
    let deposit = keys.in_mode(Mode::Test).deposit("gone");
    let _: i64 = fixture.redis.command(&["HSET", &deposit, "state", "pending"]);
    let _: i64 = fixture.redis.command(&["HDEL", &deposit, "cancelled_at"]);
    let wallet = keys.in_mode(Mode::Test).wallet("ann");
    let _: i64 = fixture
        .redis
        .command(&["HINCRBY", &wallet, "pending", "3000000000"]);
    says(
        &found(&fixture),
        &[&["deposit txn_", "cancelled 3000000000 nanos"]],
    );
}

#[tokio::test]
async fn counters_that_were_set_back_are_found() {
    let mut fixture = Fixture::build().await;
    call(&fixture).await;
    fixture.admin = None;
    let [day, month, run] = fixture.set_counters_back();
    says(
        &found(&fixture),
        &[
            &[&format!("{day}\""), "the open holds to 2000000000"],
            &[&format!("{month}\""), "the open holds to 2000000000"],
            &[&run, "it is 5000000001 nanos", "sum to 6000000001"],
        ],
    );
}

/// Deleting a run's record gives the run its whole limit anew. Without its entries in the indexes the books agree.
#[tokio::test]
async fn a_run_that_was_deleted_with_its_index_entries_is_found() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let realm = fixture.tenants[0].account.keys.live();
    let run = realm.run("ann", "run-1");
    let _: i64 = fixture.redis.command(&["DEL", &run]);
    let by_index = fixture.cli.json_exit(&["ledger", "check"], 1);
    assert!(
        by_index.to_string().contains("names a run that has no record"),
        "{by_index}"
    );
    for (index, member) in [(realm.all_runs(), "ann/run-1"), (realm.runs("ann"), "run-1")] {
        let removed: i64 = fixture.redis.command(&["ZREM", &index, member]);
        assert_eq!(removed, 1, "{index}");
    }
    check(&fixture, &[], 0);
    says(&found(&fixture), &[&[run.as_str(), "it has no record"]]);
}

#[tokio::test]
async fn an_entry_that_was_cut_off_leaves_its_records_alone() {
    let mut fixture = Fixture::build().await;
    let spend = json!({ "agent": "poor", "amount": 7 });
    let spent = super::fixture::ok(&fixture.tenants[0].live, "/v1/spend", spend).await;
    let intent = spent["intent_id"].as_str().expect("an intent");
    fixture.admin = None;
    let (id, keys) = (
        fixture.tenants[0].account.id.clone(),
        &fixture.tenants[0].account.keys,
    );
    let chain = Chain::new(&fixture.store, Realm::new(&id, Mode::Live));
    let end = chain.seal().await.unwrap();
    let last: Vec<Vec<u8>> = fixture
        .redis
        .command(&["LRANGE", &keys.live().audit(), "-1", "-1"]);
    assert!(
        String::from_utf8_lossy(&last[0]).contains(intent),
        "the last entry is the spend's"
    );
    for list in [keys.live().audit(), keys.live().audit_hashes()] {
        let _: Vec<u8> = fixture.redis.command(&["RPOP", &list]);
    }
    let seq = (end.seq - 1).to_string();
    let field = ModeField::AuditSeq.name(Mode::Live);
    let _: i64 = fixture.redis.command(&["HSET", &keys.record(), &field, &seq]);
    let poor = keys.live().agent("poor");
    let day = fixture.period().day;
    says(
        &found(&fixture),
        &[
            &[
                &format!("{poor} d{day}\""),
                "it is 9000000000 nanos",
                "sum to 2000000000",
            ],
            &[&format!("{poor} m"), "it is 9000000000 nanos"],
            &[
                intent,
                "7000000000 nanos by poor",
                "its audit entries say nothing",
            ],
        ],
    );
}

#[tokio::test]
async fn a_trail_that_is_broken_is_not_compared() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let keys = fixture.tenants[0].account.keys.clone();
    let id = fixture.tenants[0].account.id.clone();
    Chain::new(&fixture.store, Realm::new(&id, Mode::Live))
        .seal()
        .await
        .unwrap();
    let audit = keys.live().audit();
    let line: String = fixture.redis.command(&["LINDEX", &audit, "4"]);
    let edited = line.replacen("\"actor\":\"", "\"actor\":\"x", 1);
    assert_ne!(edited, line);
    let _: String = fixture.redis.command(&["LSET", &audit, "4", &edited]);
    says(
        &found(&fixture),
        &[&[&format!("{audit} 5\""), "the trail is broken here"]],
    );
}

#[tokio::test]
async fn archived_records_are_compared_too() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let root = tempfile::tempdir().unwrap();
    move_all(&fixture, root.path()).await;
    fixture.cli = Cli::new(env!("CARGO_BIN_EXE_tollgate-admin"), fixture.redis.url())
        .env("TOLLGATE_AUDIT__ARCHIVE", root.path().display().to_string());
    check(&fixture, &["--trail"], 0);
    let keys = add_to_deposit(&fixture).await;
    let table = format!("{} 1\"", keys.in_mode(Mode::Test).transactions());
    let violations = found(&fixture);
    assert!(
        violations.len() == 2 && violations[1].contains(&table),
        "{violations:?}"
    );
}

/// Archives the trails of the first account, in two segments each, and its intents.
pub(super) async fn move_all(fixture: &Fixture, root: &Path) {
    let variable = ("TOLLGATE_AUDIT__ARCHIVE".to_owned(), root.display().to_string());
    let settings = load_from(None, [variable].into_iter()).unwrap();
    let archive = Archive::at(ArchiveLocation::from_settings(&settings.audit).unwrap());
    let id = fixture.tenants[0].account.id.as_str();
    for mode in [Mode::Live, Mode::Test] {
        let trail = Trail::new(&fixture.store, &archive, Realm::new(id, mode));
        let end = trail.seal().await.unwrap().seq;
        let chain = Chain::new(&fixture.store, Realm::new(id, mode));
        for last in [end / 2, end] {
            let moved = archive.move_segment(&chain, last, 1000).await.unwrap();
            assert!(moved > 0, "{mode}: up to {last} of {end}");
        }
    }
    let age = Age {
        now_ms: clock::now_ms(),
        after_ms: 0,
        gather_ms: 0,
    };
    let moved = archive
        .move_intents(&fixture.store, &Realm::new(id, Mode::Live), age, 0)
        .await;
    assert!(moved.unwrap().intents > 0);
}
