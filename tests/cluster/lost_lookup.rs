//! Data outside of the accounts' buckets: the list of accounts, the accounts of an e-mail, the places of a deposit's
//! reference, the owners of API keys and virtual keys, blocked addresses and prices. Each master in turn is cut off
//! from its replica, killed and replaced right after it acknowledged changes whose look-ups it holds; the accounts
//! themselves are on another master. With `auto` no acknowledged look-up is missing or leads elsewhere. With `async`
//! the next request that needs the look-up and `ledger check` notice each loss.

pub mod fixture;
mod witness;

use crate::fixture::{Fixture, MASTERS};
use crate::lost_master::conclusion;
use fixture::{Change, EACH, LookupFixture, LookupKind};
use harness::{Admin, Daemon, until};
use serde_json::json;

/// Prepares all changes whose look-ups are on the master at `node`, without sending them.
async fn prepared<'a>(lookup_fixture: &'a LookupFixture<'a>, node: usize) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for kind in LookupKind::ALL {
        for _ in 0..kind.count() {
            changes.push(Change::prepare(lookup_fixture, kind, node).await);
        }
    }
    changes
}

/// Sends each change once. Returns how many were acknowledged.
async fn send(changes: &mut [Change<'_>]) -> usize {
    let mut acknowledged = 0;
    for change in changes {
        acknowledged += usize::from(change.send().await);
    }
    acknowledged
}

/// Loses the master at `node`, and brings it back as the replica of its successor.
async fn lose(fixture: &Fixture, admin: &Admin, node: usize) {
    fixture.cluster.lose(node, &fixture::key_on(fixture, node));
    fixture.cluster.nodes()[node].restart();
    fixture.cluster.wait_for_replica(node);
    let servers = [&**admin, &*fixture.edges[0]];
    until("servers that are ready", async || {
        let is_ready = |server: &&Daemon| server.ops("/readyz").is_some_and(|(status, _)| status == 200);
        servers.iter().all(is_ready)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn an_acknowledged_look_up_is_there_whichever_master_is_lost() {
    let fixture = Fixture::start(1).await;
    let admin = fixture.admin("auto");
    let lookup_fixture = LookupFixture::new(&fixture, &admin, "auto").await;
    let (mut all, mut unconfirmed) = (Vec::new(), 0);
    for node in 0..MASTERS {
        let mut before = prepared(&lookup_fixture, node).await;
        let mut after = prepared(&lookup_fixture, node).await;
        for later in node..MASTERS {
            fixture.cluster.wait_in_step(fixture.cluster.replica_of(later));
        }
        let confirmed = send(&mut before).await;
        assert_eq!(confirmed, before.len(), "with a replica in step");
        fixture.cluster.cut_off(fixture.cluster.replica_of(node));
        unconfirmed += after.len() - send(&mut after).await;
        lose(&fixture, &admin, node).await;
        all.extend(before);
        all.extend(after);
        for change in &mut all {
            change.repeat_until_acknowledged().await;
        }
    }
    let mut wrong = Vec::new();
    for change in &all {
        wrong.extend(change.lacks().await);
    }
    wrong.extend(lookup_fixture.counted_twice(&all).await);
    println!(
        "{} changes, {unconfirmed} of them not acknowledged without the replica",
        all.len()
    );
    assert!(unconfirmed > 0, "no look-up was on a master without its replica");
    assert!(wrong.is_empty(), "{wrong:#?}");
    let check = conclusion(&fixture).await;
    assert_eq!(check["ok"], json!(true), "{check}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_look_up_that_async_lost_is_noticed_by_the_next_request_and_by_the_check() {
    let fixture = Fixture::start(1).await;
    // This master holds the list of accounts.
    let node = fixture::holder(&fixture, store::keys::ACCOUNTS);
    let admin = fixture.admin("async");
    let lookup_fixture = LookupFixture::new(&fixture, &admin, "async").await;
    let mut changes = prepared(&lookup_fixture, node).await;
    fixture.cluster.wait_in_step(fixture.cluster.replica_of(node));
    fixture.cluster.cut_off(fixture.cluster.replica_of(node));
    let acknowledged = send(&mut changes).await;
    assert_eq!(acknowledged, changes.len(), "async waits for no replica");
    lose(&fixture, &admin, node).await;

    let check = conclusion(&fixture).await;
    assert_eq!(check["ok"], json!(false), "{check}");
    let violations = check["violations"].as_array().expect("a list");
    let named: Vec<String> = violations
        .iter()
        .map(|violation| violation["records"].to_string())
        .collect();
    let (mut lost, mut chosen) = (0, 0);
    for change in changes.iter_mut().filter(|change| change.is_on(node)) {
        lost += 1;
        chosen += usize::from(change.kind().is_chosen());
        let trace = change.trace();
        let is_named = named.iter().any(|records| records.contains(&trace));
        assert!(
            is_named == change.kind().is_checked(),
            "{}: {trace} is not in {named:#?}",
            change.name()
        );
        assert!(change.lacks().await.is_some(), "{} is not lost", change.name());
        if change.can_recover() {
            change.recover().await;
            assert_eq!(change.lacks().await, None, "after recovery");
        }
    }
    println!("{lost} of {} look-ups were lost, and noticed", changes.len());
    let expected = LookupKind::ALL.iter().filter(|kind| kind.is_chosen()).count() * EACH;
    assert!(
        lost > chosen && chosen == expected,
        "{lost} were lost, {chosen} of them on the chosen master"
    );
}
