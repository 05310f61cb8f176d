//! `store.durability = replicas(1)` through a failover, beside `async`: acknowledged changes, and the changes after it.

use crate::changes::{Changes, Customer};
use crate::deposits::{Depositor, Deposits};
use crate::disk::code;
use crate::fixture::{ADMIN, Fixture, MASTERS, SOON, accept};
use domain::mode::Mode;
use harness::{Cli, RedisCluster, assert_fields, eventually, until};
use serde_json::{Value, json};
use std::process::Command;

/// Acknowledged deposits before the master is killed.
const SOME: usize = 30;
/// Rounds of business before the master is killed, and after.
const FEW: usize = 10;
/// Deposits that the replica never receives.
const UNHEARD: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_failover_loses_what_async_acknowledged_and_nothing_of_replicas() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let replica = fixture.cluster.replica_of(node);
    let (quick, safe) = (fixture.admin("async"), fixture.admin("replicas(1)"));
    let one = Depositor::new(&fixture.account_on(node).await, &quick).await;
    let two = Depositor::new(&fixture.account_on(node).await, &safe).await;
    let nodes = fixture.cluster.nodes();

    // With a replica in step both acknowledge.
    one.must_deposit("one").await;
    two.must_deposit("two").await;
    let deposits = Deposits::start(&two, "before");
    deposits.more(SOME).await;

    // The replica receives nothing any more.
    fixture.cluster.cut_off(replica);
    let lost: Vec<String> = (0..UNHEARD).map(|number| format!("lost-{number}")).collect();
    for reference in &lost {
        one.must_deposit(reference).await;
    }
    let refused = two.deposit("unconfirmed").await;
    assert_eq!(
        (refused.status, code(&refused)),
        (503, "NOT_CONFIRMED".to_owned())
    );
    fixture.cluster.lose(node, &one.account.keys.record());
    let done = deposits.end().await.done;
    assert_eq!(
        one.missing(&fixture.store, &lost).await,
        lost,
        "acknowledged by async, and lost"
    );
    let missing = two.missing(&fixture.store, &done).await;
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "of {} acknowledged by replicas(1)",
        done.len()
    );
    println!(
        "async lost {} of {}; replicas(1) none of {}",
        lost.len(),
        lost.len() + 1,
        done.len()
    );

    // A server that knew a higher version refuses the account until the operator accepts.
    let refused = eventually("an answer of the new master", SOON, async || {
        let reply = one.deposit("next").await;
        quick.logs().contains("lost writes").then_some(reply)
    })
    .await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    for account in [&one.account, &two.account] {
        accept(&fixture, account);
    }
    one.must_deposit("next").await;

    // The new master has no replica, so `replicas(1)` acknowledges nothing until there is one.
    let alone = two.deposit("alone").await;
    assert_eq!((alone.status, code(&alone)), (503, "NOT_CONFIRMED".to_owned()));
    nodes[node].restart();
    fixture.cluster.wait_for_replica(node);
    let again = eventually("the same request again", SOON, async || {
        let reply = two.deposit("alone").await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    assert_fields!(again.json(), { "replayed": true }, "done before, but not confirmed");
    two.must_deposit("unconfirmed").await;
    let missing = two.missing(&fixture.store, &done).await;
    assert_eq!(missing, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn replicas_lose_nothing_under_load() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let safe = fixture.admin("replicas(1)");
    let depositor = Depositor::new(&fixture.account_on(node).await, &safe).await;
    let deposits = Deposits::start(&depositor, "load");
    deposits.more(SOME).await;
    fixture.cluster.lose(node, &depositor.account.keys.record());
    let sent = deposits.end().await;
    let missing = depositor.missing(&fixture.store, &sent.done).await;
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "of {} acknowledged",
        sent.done.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_change_that_was_acknowledged_is_on_the_replica() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let account = fixture.account_on(node).await;
    let safe = fixture.admin("replicas(1)");
    let customer = Customer::new(&account, &safe).await;
    let changes = Changes::start(&customer);
    changes.more(FEW).await;
    fixture.cluster.lose(node, &account.keys.record());
    fixture.cluster.nodes()[node].restart();
    fixture.cluster.wait_for_replica(node);
    // Unacknowledged writes may be lost; the account is then refused until the operator accepts it.
    accept(&fixture, &account);
    changes.more(FEW).await;
    println!("none of {} changes of money lost", changes.end().await);
    let check = Cli::new(ADMIN, fixture.cluster.url()).json(&["ledger", "check"]);
    assert_eq!(check["ok"], json!(true), "{check}");
}

/// A backup leaves the traces of a replica on a master that the cluster lists none for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_masters_without_replicas_delays_no_change() {
    let fixture = Fixture::on(RedisCluster::start(MASTERS), 0).await;
    let make = |name: &str| {
        let cli = Cli::new(ADMIN, fixture.cluster.url()).env("TOLLGATE_STORE__DURABILITY", "auto");
        cli.json(&["account", "create", "--name", name, "--plan", "free"])
    };
    make("Before");
    let folder = tempfile::tempdir().expect("a folder");
    for node in fixture.cluster.nodes() {
        let snapshot = folder.path().join(node.port().to_string());
        let backup = Command::new("redis-cli")
            .args(["-p", &node.port().to_string(), "--rdb"])
            .arg(&snapshot)
            .output()
            .expect("redis-cli");
        assert!(backup.status.success(), "{backup:?}");
        let info: String = node.command(&["INFO", "replication", "stats"]);
        assert!(
            info.contains("sync_full:1") && info.contains("repl_backlog_active:1"),
            "{info}"
        );
    }
    make("After");
}

/// Decision D75.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spend_that_is_not_confirmed_names_its_intent() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let safe = fixture.admin("replicas(1)");
    let account = fixture.account_on(node).await;
    let key = account.api_key(Mode::Test).await;
    let caller = safe.caller(&key);
    let done = async |path: &str, body: Value| {
        let reply = caller.post(path, body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    done("/v1/wallets/create", json!({ "botId": "ann" })).await;
    done("/v1/policies/ann", json!({})).await;
    let deposit = json!({ "wallet": "ann", "amount": 5, "reference": "rail" });
    done("/v1/wallet/deposits", deposit).await;
    fixture.cluster.cut_off(fixture.cluster.replica_of(node));
    let spend = json!({ "agent": "ann", "amount": 1, "idempotency_key": "spend" });
    let refused = caller.post("/v1/spend", spend.clone()).await;
    assert_eq!(
        (refused.status, code(&refused)),
        (503, "NOT_CONFIRMED".to_owned())
    );
    let named = refused.json()["intent_id"].clone();
    assert!(
        named.as_str().is_some_and(|id| id.starts_with("int_")),
        "{}",
        refused.text()
    );
    // The spend ran: a server that waits for no replica finds it under that id.
    let quick = fixture.admin("async");
    let again = quick.caller(&key).post("/v1/spend", spend).await;
    assert_fields!(again.json(), { "intent_id": named, "replayed": true });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_start_says_what_a_failover_may_take_back() {
    let fixture = Fixture::start(0).await;
    for (durability, exposed) in [("async", 1), ("replicas(1)", 0)] {
        let admin = fixture.admin(durability);
        let logs = eventually("a line about durability", SOON, async || {
            let logs = admin.logs();
            (logs.contains("waits for no replica") || logs.contains("is acknowledged")).then_some(logs)
        })
        .await;
        until("the gauge", async || {
            admin.metric("tollgate_admin_store_exposed") == Some(exposed)
        })
        .await;
        let sentence =
            format!("store.durability = {durability} waits for no replica, and the store has some");
        let warned = logs.lines().find(|line| line.contains(&sentence));
        assert_eq!(warned.is_some(), exposed > 0, "{durability}: {logs}");
        assert!(warned.is_none_or(|line| line.contains("WARN")), "{warned:?}");
    }
}
