//! The pool of dedicated connections of a process, seen from the store: the state of a reused connection, the error of
//! a change that got no connection, and the end of connections.

use crate::fixture::{MASTERS, SOON};
use crate::pair::{Timeouts, by_a_replica, master_with_replica};
use harness::{ClosedPort, Redis, RedisCluster, Store, Wire, eventually, until};
use std::time::Duration;
use store::StoreError;
use tokio::task::JoinHandle;

/// Maximum dedicated connections of a process to one server, and of one account.
const MOST: usize = 32;
const OF_ACCOUNT: usize = 8;
/// Longer than any test, so that no test observes the end of a time-out.
const PATIENT: Timeouts = (120_000, 120_000);
/// Time-outs short enough for a test to wait for.
const IMPATIENT: Timeouts = (1_000, 5_000);
/// Each step of a new connection takes this long: far longer than on a sound network, far shorter than [`PATIENT`].
const SLOW_STEP: Duration = Duration::from_millis(700);

fn key(account: usize, name: &str) -> String {
    format!("{{b0001}}/acct_{account}/{name}")
}

/// Starts a change of an account. The change counts its executions.
fn change(store: &Store, account: usize, name: &str) -> JoinHandle<Result<u64, StoreError>> {
    let (store, key) = (store.clone(), key(account, name));
    tokio::spawn(async move { store.command_safely(redis::cmd("INCR").arg(&key), &key).await })
}

fn has_run(server: &Redis, account: usize, name: &str) -> bool {
    server.command::<u64>(&["EXISTS", &key(account, name)]) == 1
}

/// Ids of the dedicated connections: no other connection sends `WAIT`.
fn dedicated(server: &Redis, is_blocked: bool) -> Vec<String> {
    let list: String = server.command(&["CLIENT", "LIST"]);
    let word = |line: &str, name: &str| {
        let words = line.split(' ');
        let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values.next().expect("a word").to_owned()
    };
    let waits = list.lines().filter(|line| word(line, "cmd") == "wait");
    let waits = waits.filter(|line| word(line, "flags").contains('b') == is_blocked);
    waits.map(|line| word(line, "id")).collect()
}

/// Waits until `count` connections wait for the replica.
async fn waiting(server: &Redis, count: usize) -> Vec<String> {
    eventually("changes that wait for the replica", SOON, async || {
        let blocked = dedicated(server, true);
        (blocked.len() == count).then_some(blocked)
    })
    .await
}

async fn closed(server: &Redis, id: &String) {
    until("the end of a connection", async || {
        let mut there = dedicated(server, true);
        there.extend(dedicated(server, false));
        !there.contains(id)
    })
    .await;
}

/// A change that waits for its paused replica on one of three connections, of which the others are idle.
struct Pending {
    master: Redis,
    replica: Redis,
    store: Store,
    /// The ids of the three connections.
    idle: Vec<String>,
    change: JoinHandle<Result<u64, StoreError>>,
    /// The id of the connection of the change.
    in_use: String,
}

impl Pending {
    async fn start(name: &str) -> Self {
        let (master, replica) = master_with_replica().await;
        let store = by_a_replica(master.url(), PATIENT);
        let idle = idle_connections(&store, (&master, &replica), 3).await;
        replica.pause();
        let change = change(&store, 1, name);
        let in_use = waiting(&master, 1).await.remove(0);
        Self {
            master,
            replica,
            store,
            idle,
            change,
            in_use,
        }
    }
}

/// Makes `count` idle connections: changes that wait for the replica at the same time.
async fn idle_connections(store: &Store, (master, replica): (&Redis, &Redis), count: usize) -> Vec<String> {
    replica.pause();
    let changes: Vec<_> = (0..count).map(|at| change(store, at, "idle")).collect();
    let ids = waiting(master, count).await;
    replica.resume();
    for change in changes {
        change.await.unwrap().unwrap();
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_in_the_middle_of_a_wait_leaves_no_connection() {
    let (master, replica) = master_with_replica().await;
    let store = by_a_replica(master.url(), PATIENT);
    let _: String = master.command(&["SET", &key(1, "left"), "40"]);
    replica.pause();
    let leaving = change(&store, 1, "left");
    let left = waiting(&master, 1).await.remove(0);
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    // The next change runs at once, before the waiting connection could be closed as idle.
    let next = change(&store, 1, "next");
    until("the next change at work", async || has_run(&master, 1, "next")).await;
    closed(&master, &left).await;
    waiting(&master, 1).await;
    replica.resume();
    assert_eq!(next.await.unwrap().unwrap(), 1, "its own answer");
    assert_eq!(master.command::<u64>(&["GET", &key(1, "left")]), 41);
}

/// The abandoned connection is not tried again: its failure would make the pool give up the idle ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_leaves_idle_connections_to_the_next() {
    let Pending {
        master,
        replica,
        store,
        idle,
        change: leaving,
        in_use: left,
    } = Pending::start("left").await;
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    let next = change(&store, 2, "next");
    let used = eventually("the next change at work", SOON, async || {
        let mut blocked = dedicated(&master, true);
        blocked.retain(|id| *id != left);
        blocked.pop()
    })
    .await;
    assert!(idle.contains(&used), "{used} is none of {idle:?}");
    replica.resume();
    assert_eq!(next.await.unwrap().unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_connection_is_reported_at_once() {
    let closed = ClosedPort::take();
    let store = by_a_replica(format!("redis://{}", closed.address()), PATIENT);
    for name in ["one", "two"] {
        let refused = tokio::time::timeout(SOON, change(&store, 1, name)).await;
        let refused = refused.expect("long before the deadline").unwrap();
        match refused {
            Err(StoreError::NotConnected(source)) => assert!(source.is_connection_refusal(), "{source}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A store, or this process, that is slow to connect: the deadline of the settings counts and no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_connection_is_waited_for_until_the_deadline() {
    let (master, _replica) = master_with_replica().await;
    let wire = Wire::to_port(master.port());
    wire.delay_requests(SLOW_STEP);
    let store = by_a_replica(wire.redis_url(), PATIENT);
    let changes = [change(&store, 1, "slow"), change(&store, 2, "slow")];
    for changed in changes {
        assert_eq!(changed.await.unwrap().unwrap(), 1);
    }
    let shared: Result<String, _> = store.command(&redis::cmd("PING")).await;
    assert_eq!(shared.unwrap(), "PONG", "on the shared connection");
    // Idle connections are as slow, and no reason to give the server up.
    let made = wire.connections();
    assert_eq!(change(&store, 1, "slow").await.unwrap().unwrap(), 2);
    assert_eq!(wire.connections(), made, "an idle connection was used");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_connection_to_a_master_that_was_given_up_is_used_again() {
    let (old, replica) = master_with_replica().await;
    let (new, _other_replica) = master_with_replica().await;
    let wire = Wire::to_port(old.port());
    let store = by_a_replica(wire.redis_url(), PATIENT);
    let idle = idle_connections(&store, (&old, &replica), 3).await;
    let nowhere = ClosedPort::take();
    let nobody = nowhere.address().port().to_string();
    let _: String = old.command(&["REPLICAOF", "127.0.0.1", &nobody]);
    let answer = change(&store, 1, "refused").await.unwrap();
    assert!(
        matches!(&answer, Err(StoreError::Refused { code, .. }) if code == "READONLY"),
        "{answer:?}"
    );
    wire.lead_to(new.port());
    let changes: Vec<_> = (0..idle.len()).map(|at| change(&store, at, "next")).collect();
    for change in changes {
        change.await.unwrap().unwrap();
    }
    for id in &idle {
        closed(&old, id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_in_use_while_its_master_is_given_up_is_not_used_again() {
    let Pending {
        master,
        replica,
        store,
        idle,
        change: held,
        in_use,
    } = Pending::start("held").await;
    for id in idle.iter().filter(|id| **id != in_use) {
        let _: u64 = master.command(&["CLIENT", "KILL", "ID", id]);
    }
    // This change finds the idle connections dead.
    let next = change(&store, 2, "next");
    waiting(&master, 2).await;
    replica.resume();
    assert_eq!(next.await.unwrap().unwrap(), 1);
    assert_eq!(held.await.unwrap().unwrap(), 1);
    closed(&master, &in_use).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_takes_those_beside_it_along() {
    let Pending {
        master,
        replica,
        store,
        idle,
        change: held,
        in_use,
    } = Pending::start("held").await;
    let _: u64 = master.command(&["CLIENT", "KILL", "ID", &in_use]);
    let reported = held.await.unwrap().unwrap_err();
    assert!(reported.may_have_run(), "{reported:?}");
    // The idle connections may lead to an earlier server of the address, so none of them is used.
    let next = change(&store, 2, "next");
    let made = waiting(&master, 1).await.remove(0);
    assert!(!idle.contains(&made), "{made} is one of {idle:?}");
    replica.resume();
    assert_eq!(next.await.unwrap().unwrap(), 1);
    for id in &idle {
        closed(&master, id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_waits_while_all_connections_are_in_use() {
    let (master, replica) = master_with_replica().await;
    let store = by_a_replica(master.url(), PATIENT);
    replica.pause();
    let mut changes: Vec<_> = (0..MOST).map(|at| change(&store, at, &format!("{at}"))).collect();
    waiting(&master, MOST).await;
    changes.push(change(&store, MOST, "late"));
    assert!(!has_run(&master, MOST, "late"));
    replica.resume();
    for change in changes {
        assert_eq!(change.await.unwrap().unwrap(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_without_a_connection_within_the_deadline_was_not_sent() {
    let (master, replica) = master_with_replica().await;
    let store = by_a_replica(master.url(), IMPATIENT);
    replica.pause();
    let changes: Vec<_> = (0..MOST).map(|at| change(&store, at, &format!("{at}"))).collect();
    waiting(&master, MOST).await;
    let late = change(&store, MOST, "late");
    master.pause();
    let reported = late.await.unwrap();
    assert!(
        matches!(reported, Err(StoreError::NotConnected(_))),
        "{reported:?}"
    );
    for change in changes {
        let reported = change.await.unwrap().unwrap_err();
        assert!(reported.may_have_run(), "{reported:?}");
    }
    master.resume();
    assert!(!has_run(&master, MOST, "late"));
    assert!(has_run(&master, 0, "0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_at_its_share_delays_no_other() {
    let (master, replica) = master_with_replica().await;
    let store = by_a_replica(master.url(), PATIENT);
    replica.pause();
    let mut changes: Vec<_> = (0..=OF_ACCOUNT)
        .map(|at| change(&store, 1, &format!("{at}")))
        .collect();
    waiting(&master, OF_ACCOUNT).await;
    changes.push(change(&store, 2, "other"));
    waiting(&master, OF_ACCOUNT + 1).await;
    assert!(has_run(&master, 2, "other"));
    let ran = (0..=OF_ACCOUNT).filter(|at| has_run(&master, 1, &format!("{at}")));
    assert_eq!(ran.count(), OF_ACCOUNT);
    replica.resume();
    for change in changes {
        assert_eq!(change.await.unwrap().unwrap(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_a_server_that_is_no_master_any_more_are_closed() {
    let cluster = RedisCluster::start_replicated(MASTERS);
    let store = by_a_replica(cluster.url(), (5_000, 1_000));
    let record = key(1, "first");
    change(&store, 1, "first").await.unwrap().unwrap();
    let from = cluster.holder_known_to(0, &record).expect("a master");
    let old = &cluster.nodes()[from];
    assert_eq!(dedicated(old, false).len(), 1);
    cluster.hand_over(&record, cluster.replica_of(from));
    // Keys in many slots: each one that was on the old master makes the process read the slot map again.
    let mut buckets = 0..;
    eventually("the end of connections to the old master", SOON, async || {
        let key = format!("{{b{:04}}}/acct_1/next", buckets.next()?);
        let reported: Result<u64, _> = store.command_safely(redis::cmd("INCR").arg(&key), &key).await;
        // The new master has a replica once the old master is in step with it.
        let is_there = matches!(reported, Ok(_) | Err(StoreError::NotDurable { ran: true, .. }));
        (is_there && dedicated(old, false).is_empty()).then_some(())
    })
    .await;
}
