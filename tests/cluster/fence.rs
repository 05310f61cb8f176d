//! Replays of an earlier change: each is confirmed by a write of its own, the fence. If that write is refused, nothing
//! is confirmed.

use crate::fixture::MASTERS;
use crate::pair::{Timeouts, by_a_replica, handle, master_with_replica};
use harness::{ClosedPort, Redis, RedisCluster, Wire};
use settings::durability::Durability;
use store::StoreError;

/// A hash with the requested field, in the bucket of the fence.
const ROWS: &str = "{b0001}/transit";
const ROW: &str = "row";
const FENCE: &str = "{b0001}/fence";
const TIMEOUTS: Timeouts = (5_000, 2_000);
/// Time-outs where a confirmation fails.
const IMPATIENT: Timeouts = (5_000, 200);

/// A master that has the row, and its replica.
async fn with_the_row() -> (Redis, Redis) {
    let (master, replica) = master_with_replica().await;
    let _: u64 = master.command(&["HSET", ROWS, ROW, "1"]);
    (master, replica)
}

fn is_unconfirmed(answer: &Result<bool, StoreError>) -> bool {
    matches!(answer, Err(StoreError::NotDurable { ran: true, .. }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_is_refused_confirms_nothing() {
    let (master, _replica) = with_the_row().await;
    let store = by_a_replica(master.url(), TIMEOUTS);
    assert!(store.is_safely_there(ROWS, Some(ROW)).await.unwrap());
    assert_eq!(master.command::<u64>(&["EXISTS", FENCE]), 1);
    // The server refuses writes now. One replica is connected and answers the wait.
    let _: String = master.command(&["CONFIG", "SET", "min-replicas-to-write", "2"]);
    let answer = store.is_safely_there(ROWS, Some(ROW)).await;
    assert!(is_unconfirmed(&answer), "{answer:?}");
    let _: String = master.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    assert!(store.is_safely_there(ROWS, Some(ROW)).await.unwrap());
    assert!(!store.is_safely_there(ROWS, Some("another")).await.unwrap());
}

/// Each command of the command line is a new process: all it knows of a server is what that server reports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_waits_for_the_replica_that_was_cut_off_before_it_started() {
    let (master, replica) = with_the_row().await;
    let new_process = |timeouts| handle(Durability::Auto, master.url(), timeouts);
    let followed = new_process(TIMEOUTS).is_safely_there(ROWS, Some(ROW)).await;
    assert!(followed.unwrap());
    let _: String = replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let answer = new_process(IMPATIENT).is_safely_there(ROWS, Some(ROW)).await;
    assert!(is_unconfirmed(&answer), "{answer:?}");

    // The replica takes over. No replica has followed it so far.
    drop(master);
    let _: String = replica.command(&["REPLICAOF", "NO", "ONE"]);
    let promoted = handle(Durability::Auto, replica.url(), IMPATIENT);
    assert!(promoted.is_safely_there(ROWS, Some(ROW)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_store_still_confirms() {
    let (master, _replica) = with_the_row().await;
    let store = by_a_replica(master.url(), TIMEOUTS);
    let _: String = master.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(store.is_safely_there(ROWS, Some(ROW)).await.unwrap());
    assert_eq!(master.command::<u64>(&["EXISTS", FENCE]), 1, "fence written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_became_a_replica_is_left() {
    let (old, _replica) = with_the_row().await;
    let (new, _other_replica) = with_the_row().await;
    let wire = Wire::to_port(old.port());
    let store = by_a_replica(wire.redis_url(), TIMEOUTS);
    assert!(store.is_safely_there(ROWS, Some(ROW)).await.unwrap());
    let closed = ClosedPort::take();
    let nobody = closed.address().port().to_string();
    let _: String = old.command(&["REPLICAOF", "127.0.0.1", &nobody]);
    let answer = store.is_safely_there(ROWS, Some(ROW)).await;
    assert!(is_unconfirmed(&answer), "{answer:?}");
    wire.lead_to(new.port());
    assert!(store.is_safely_there(ROWS, Some(ROW)).await.unwrap());
    assert_eq!(new.command::<u64>(&["EXISTS", FENCE]), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_is_elsewhere_confirms_nothing() {
    let cluster = RedisCluster::start_replicated(MASTERS);
    let store = by_a_replica(cluster.url(), TIMEOUTS);
    let from = cluster.holder_known_to(0, ROWS).expect("a master");
    let (to, slot) = ((from + 1) % MASTERS, cluster.slot(ROWS));
    let nodes = cluster.nodes();
    let _: u64 = nodes[from].command(&["HSET", ROWS, ROW, "1"]);
    assert!(store.is_safely_there(ROWS, Some(ROW)).await.unwrap());

    // While the slot moves, the node of the row has no fence, as if it was never written there.
    let _: u64 = nodes[from].command(&["DEL", FENCE]);
    cluster.begin_move(slot, from, to);
    let answer = store.is_safely_there(ROWS, Some(ROW)).await;
    assert!(answer.is_err(), "{answer:?}");

    // Now the row is where the fence is.
    while cluster.move_some(slot, from, to) > 0 {}
    assert!(store.is_safely_there(ROWS, Some(ROW)).await.unwrap());
    cluster.end_move(slot, to);
    cluster.wait_for_holder(ROWS, to, &[]);
    assert!(store.is_safely_there(ROWS, Some(ROW)).await.unwrap());
}
