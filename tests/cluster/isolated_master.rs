//! A master that is cut off from its cluster while processes still reach it, and whose replica takes over.

use crate::deposits::Depositor;
use crate::fixture::{Fixture, MASTERS, accept, call, cap};
use domain::mode::Mode;
use harness::{RedisCluster, SeedAccount, until};
use serde_json::{Value, json};
use std::time::Duration;
use store::keys;

/// Maximum number of keys and references made until the look-up of one is on the wanted node.
const TRIES: usize = 200;
/// Rounds of requests after the master has stopped.
const ROUNDS: usize = 5;
/// Pause between two rounds.
const PAUSE: Duration = Duration::from_millis(20);

/// The balance that a reply shows.
fn balance(reply: &Value) -> Option<u64> {
    let text = reply["user_wallet"]["usdc"].to_string();
    text.trim_matches('"').parse::<f64>().ok().map(|usd| usd as u64)
}

/// Whether the look-up `key` is on the master at `node`.
fn is_on(fixture: &Fixture, node: usize, key: &str) -> bool {
    fixture.cluster.holder_known_to(0, key) == Some(node)
}

/// An API key whose look-up is on the master at `node`.
async fn key_on(fixture: &Fixture, node: usize, account: &SeedAccount) -> String {
    for _ in 0..TRIES {
        let key = account.api_key(Mode::Test).await;
        let hash = crypto::sha256_hex(key.as_bytes());
        if is_on(fixture, node, &keys::api_key_lookup(&hash)) {
            return key;
        }
    }
    panic!("no API key on node {node}");
}

/// References of deposits whose look-ups are on the master at `node`.
fn references(fixture: &Fixture, node: usize) -> std::vec::IntoIter<String> {
    let all = (0..TRIES).map(|number| format!("cut-{number}"));
    let there = all.filter(|reference| is_on(fixture, node, &keys::deposit_lookup(reference)));
    there.collect::<Vec<_>>().into_iter()
}

/// Asserts that the first conclusive ledger check finds no violation.
async fn assert_clean(fixture: &Fixture) {
    let document = crate::lost_master::conclusion(fixture).await;
    assert_eq!(document["violations"], json!([]), "{document}");
}

/// Admin server and edge are on the side of the isolated master, and reach nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_isolated_master_confirms_no_change_and_stops() {
    let mut fixture = Fixture::on(RedisCluster::start_wired(MASTERS), 0).await;
    // Requests need the ledger's record, so its master is the isolated one.
    let node = fixture.home();
    let replica = fixture.cluster.replica_of(node);
    fixture.edges.push(fixture.edge());
    let account = fixture.account_on(node).await;
    let key = key_on(&fixture, node, &account).await;
    let resident = fixture.resident_on(node, cap(None)).await;
    let admin = fixture.admin("auto");
    let depositor = Depositor {
        account: account.clone(),
        caller: admin.caller(&key),
    };
    let agent = fixture.edges[0].caller(&resident.key);
    let mut references = references(&fixture, node);
    let first = references.next().expect("a reference");
    depositor.must_deposit(&first).await;
    assert_eq!(agent.chat(call("before")).await.status, 200);
    fixture.cluster.wait_in_step(replica);

    fixture.cluster.isolate(node, true, true);
    let (mut sent, mut stale_reads, mut lost_calls, mut rounds) = (Vec::new(), 0, 0, 0);
    while rounds < ROUNDS {
        let has_stopped = fixture.cluster.has_stopped(node);
        let read = depositor.caller.get("/v1/wallet").await;
        let reference = references.next().expect("a reference");
        let change = depositor.deposit(&reference).await;
        let reply = agent.chat(call(&reference)).await;
        assert_eq!(
            change.status,
            503,
            "{reference} is not confirmed: {}",
            change.text()
        );
        for status in [read.status, reply.status] {
            assert!(
                status == 503 || status == 200 && !has_stopped,
                "{status} after it stopped"
            );
        }
        stale_reads += usize::from(read.status == 200);
        lost_calls += usize::from(reply.status == 200);
        sent.push(reference);
        rounds += usize::from(has_stopped);
        tokio::time::sleep(PAUSE).await;
    }
    let record = account.keys.record();
    fixture.cluster.wait_for_holder(&record, replica, &[node]);
    println!(
        "{} changes refused, {stale_reads} reads and {lost_calls} calls before it stopped",
        sent.len()
    );

    fixture.cluster.reunite();
    fixture.cluster.wait_for_holder(&record, replica, &[]);
    fixture.found_again(&record).await;
    // The servers saw versions that are gone, and refuse both accounts until the operator accepts them.
    accept(&fixture, &account);
    accept(&fixture, &resident.agent.account);
    for reference in &sent {
        until("an acknowledged deposit", async || {
            let reply = depositor.deposit(reference).await;
            assert!([200, 503].contains(&reply.status), "{}", reply.text());
            reply.status == 200
        })
        .await;
    }
    let reply = depositor.caller.get("/v1/wallet").await;
    let expected = Some(sent.len() as u64 + 1);
    assert_eq!(
        (reply.status, balance(&reply.json())),
        (200, expected),
        "{}",
        reply.text()
    );
    until("an approved call", async || {
        agent.chat(call("after")).await.status == 200
    })
    .await;
    assert_clean(&fixture).await;
}

/// Two admin servers reach every node. One still has the isolated master in its slot map, and that master serves for
/// longer than the test; the other server acknowledges a change on the new master.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_an_old_map_shows_no_balance_from_before_an_acknowledged_change() {
    let fixture = Fixture::on(RedisCluster::start_wired(MASTERS), 0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let replica = fixture.cluster.replica_of(node);
    let account = fixture.account_on(node).await;
    let key = account.api_key(Mode::Test).await;
    // A reply that comes late makes a server ask for a new slot map.
    let old = fixture.patient_admin("auto");
    let depositor = Depositor {
        account: account.clone(),
        caller: old.caller(&key),
    };
    depositor.must_deposit("before").await;
    fixture.cluster.wait_in_step(replica);

    fixture.cluster.isolate(node, false, false);
    let record = account.keys.record();
    fixture.cluster.wait_for_holder(&record, replica, &[node]);
    let reply = depositor.caller.get("/v1/wallet").await;
    assert_eq!(
        (reply.status, balance(&reply.json())),
        (200, Some(1)),
        "nothing is newer"
    );

    let new = fixture.admin_at_once("auto");
    let other = Depositor {
        account: account.clone(),
        caller: new.caller(&key),
    };
    until("a deposit on the new master", async || {
        other.deposit("acknowledged").await.status == 200
    })
    .await;
    assert!(!fixture.cluster.has_stopped(node));
    for round in 0..ROUNDS {
        let read = depositor.caller.get("/v1/wallet").await;
        let is_current = read.status == 200 && balance(&read.json()) == Some(2);
        assert!(read.status == 503 || is_current, "{round}: {}", read.text());
        let change = depositor.deposit(&format!("old-{round}")).await;
        assert!(change.status == 503, "{round}: {}", change.text());
    }

    fixture.cluster.reunite();
    fixture.cluster.wait_for_holder(&record, replica, &[]);
    fixture.found_again(&record).await;
    for round in 0..ROUNDS {
        until("an acknowledged deposit", async || {
            let reply = depositor.deposit(&format!("old-{round}")).await;
            reply.status == 200
        })
        .await;
    }
    let reply = depositor.caller.get("/v1/wallet").await;
    let expected = Some(2 + ROUNDS as u64);
    assert_eq!(
        (reply.status, balance(&reply.json())),
        (200, expected),
        "{}",
        reply.text()
    );
    assert_clean(&fixture).await;
}
