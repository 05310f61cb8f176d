//! A slot moves to another master while its account is called: calls are approved or denied, never both or neither, and
//! the ledger is exact when it is over.

use crate::fixture::{COST, Fixture, MASTERS, cap};
use crate::load::{Load, charged, forwarded, gap, words};
use harness::{RedisCluster, Store};
use std::time::{Duration, Instant};
use store::keys::Bucket;
use store::read::Read;

/// Calls that the capped account has room for.
const ROOM: u64 = 200;
/// Approvals before the slot moves, and after.
const SOME: usize = 15;
/// Edges that serve the calls.
const EDGES: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_moves_under_load() {
    // No node hangs or dies here: a machine that stalls for longer than `store.timeout_ms` must not deny a call.
    let mut fixture = Fixture::start(0).await;
    for _ in 0..EDGES {
        fixture.edges.push(fixture.patient_edge());
    }
    let from = (fixture.home() + 1) % MASTERS;
    let residents = [
        fixture.resident_on(from, cap(None)).await,
        fixture.resident_on(from, cap(Some(ROOM * COST))).await,
        fixture.resident_on((from + 1) % MASTERS, cap(None)).await,
    ];
    let to = (from + 2) % MASTERS;
    let load = Load::start(&fixture, &residents);
    load.approvals(&[0, 1, 2], SOME, Instant::now()).await;
    for resident in &residents[..2] {
        let record = resident.agent.account.keys.record();
        // Two accounts may be in one slot, which the first took along.
        if fixture.cluster.holder_known_to(to, &record) == Some(to) {
            continue;
        }
        let slot = fixture.cluster.slot(&record);
        fixture.cluster.begin_move(slot, from, to);
        // The keys of a call are on both nodes now: it is refused, and tried again.
        let began = Instant::now();
        load.approvals(&[2], SOME, began).await;
        while fixture.cluster.move_some(slot, from, to) > 0 {}
        fixture.cluster.end_move(slot, to);
        fixture.cluster.wait_for_holder(&record, to, &[]);
    }
    load.approvals(&[0, 2], SOME, Instant::now()).await;
    let outcomes = load.end().await;
    let calls = forwarded(&fixture, residents.len(), &outcomes);
    for (resident, calls) in residents.iter().zip(&calls) {
        assert_eq!(
            charged(&fixture, resident, *calls).await,
            *calls,
            "each call is charged"
        );
    }
    assert!(calls[1] <= ROOM, "{} calls with room for {ROOM}", calls[1]);
    for resident in 0..2 {
        for word in words(&outcomes, resident).keys() {
            let known = ["approved", "service_unavailable", "daily_limit"].contains(word);
            assert!(known, "{word}");
        }
    }
    let elsewhere = words(&outcomes, 2);
    assert_eq!(
        elsewhere.keys().copied().collect::<Vec<_>>(),
        ["approved"],
        "{elsewhere:?}"
    );
    println!(
        "while its slot moved an account went without an approval for {:?}",
        gap(&outcomes, 0)
    );
}

/// Commands that go to a node which serves no slot yet.
const COMMANDS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_a_slot_that_moves_are_read_where_they_are() {
    let cluster = RedisCluster::start_with_spare(MASTERS);
    let (nodes, to) = (cluster.nodes(), MASTERS);
    let store = Store::open(&cluster.url(), Duration::from_secs(5)).expect("the cluster");
    let bucket = Bucket::all().next().expect("a bucket");
    let [moved, stays, hash] = ["moved", "stays", "hash"].map(|name| bucket.hold(name));
    let from = cluster.holder_known_to(0, &moved).expect("a master");
    for text in [&moved, &stays] {
        let _: String = nodes[from].command(&["SET", text, text]);
    }
    let _: u64 = nodes[from].command(&["HSET", &hash, "field", "1"]);
    cluster.begin_move(cluster.slot(&moved), from, to);
    let port = nodes[to].port().to_string();
    let _: String = nodes[from].command(&["MIGRATE", "127.0.0.1", &port, &moved, "0", "5000"]);

    // One of another type is an answer; those beside it are read all the same.
    let reads = [&hash, &moved, &stays].map(|key| Read::text(bucket, key));
    let mut answers = store.many(&reads).await.expect("answers");
    assert_eq!(answers.read::<String>(), None);
    assert_eq!(answers.read::<String>(), Some(moved.clone()));
    assert_eq!(answers.read::<String>(), Some(stays));

    // The node that the slot is on its way to is not connected to for each command.
    let before = connections(&nodes[to]);
    for _ in 0..COMMANDS {
        let text: String = store
            .command(redis::cmd("GET").arg(&moved))
            .await
            .expect("an answer");
        assert_eq!(text, moved);
    }
    let made = connections(&nodes[to]) - before;
    assert!(made <= 3, "{made} connections for {COMMANDS} commands");
}

/// Connections that a server has had; each question is one.
fn connections(server: &harness::Redis) -> usize {
    let info: String = server.command(&["INFO", "stats"]);
    let mut lines = info.lines();
    let count = lines.find_map(|line| line.strip_prefix("total_connections_received:"));
    count.expect("a count").trim().parse().expect("a number")
}
