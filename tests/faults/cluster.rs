//! One node of a cluster fails: its accounts are denied, the others are served, and nothing is lost.

use crate::fixture::{ACTUAL, PROXY, answer, body, metric, unavailable};
use harness::{Caller, Edge, EdgeOptions, RedisCluster, Seed, SeedAgent, Store, Upstream, open_cap, until};
use std::time::Duration;

const NODES: usize = 3;

/// Keeps a node busy for some seconds, and says then that it was restored.
const AWAY: &str = "for _ = 1, 800000000 do end
return redis.call('HSET', KEYS[1], 'restored', 'yesterday')";

/// The node that holds this agent's account, by asking each for its record.
fn node_of(cluster: &RedisCluster, agent: &SeedAgent) -> usize {
    let record = agent.account.keys.record();
    let holds = |node: &harness::Redis| {
        node.try_command::<u64>(&["EXISTS", &record])
            .is_ok_and(|found| found == 1)
    };
    cluster
        .nodes()
        .iter()
        .position(holds)
        .expect("a node with the account")
}

async fn served(caller: &Caller) {
    until("an approved call", async || {
        caller.chat(body()).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn a_frozen_node_denies_its_accounts_only() {
    let cluster = RedisCluster::start(NODES);
    let store = Store::open(&cluster.url(), Duration::from_secs(5)).expect("the cluster");
    let seed = Seed::new(&store).await;
    let upstream = Upstream::start(|_| answer());
    let options = EdgeOptions::new(PROXY, cluster.url(), upstream.base_url());
    let edge = Edge::start(options.env("TOLLGATE_STORE__TIMEOUT_MS", "700"));
    let home = cluster.nodes().iter().position(|node| {
        node.try_command::<u64>(&["EXISTS", store::keys::STORE])
            .is_ok_and(|found| found == 1)
    });
    let home = home.expect("a node with the ledger's record");
    // One account on a node that can be frozen without the ledger's own record, one elsewhere.
    let (mut frozen, mut other) = (None, None);
    let policy = open_cap();
    while frozen.is_none() || other.is_none() {
        let (agent, key) = seed.ready_agent("builder", policy).await;
        let node = node_of(&cluster, &agent);
        let caller = edge.caller(&key);
        served(&caller).await;
        if node == home {
            other = Some((agent, caller, node));
        } else {
            frozen = Some((agent, caller, node));
        }
    }
    let ((agent, caller, node), (fine, fine_caller, _)) = (frozen.expect("found"), other.expect("found"));
    let settled = async |agent: &SeedAgent, nanos: u64| {
        until("an exact ledger", async || {
            let exact = agent.counters().await.day_nanos == nanos && agent.open_holds().await == 0;
            exact && metric(&edge, "tollgate_proxy_pending") == 0
        })
        .await;
    };
    settled(&agent, ACTUAL).await;
    let before = upstream.arrived();
    cluster.nodes()[node].pause();
    for _ in 0..3 {
        unavailable(&caller.chat(body()).await);
    }
    assert_eq!(upstream.arrived(), before, "nothing is forwarded");
    let reply = fine_caller.chat(body()).await;
    assert_eq!(reply.status, 200, "the other account is not touched");
    cluster.nodes()[node].resume();
    settled(&agent, ACTUAL).await;
    served(&caller).await;
    settled(&agent, 2 * ACTUAL).await;
    settled(&fine, 2 * ACTUAL).await;
    assert_eq!(upstream.arrived(), before + 2);
}

/// The node of the ledger's record hangs and returns restored from a backup: calls are denied at once, not at the next
/// check, also those of an account on another node that was served all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_node_denies_from_its_first_answer_on() {
    let cluster = RedisCluster::start(NODES);
    let store = Store::open(&cluster.url(), Duration::from_secs(5)).expect("the cluster");
    let seed = Seed::new(&store).await;
    let upstream = Upstream::start(|_| answer());
    let options = EdgeOptions::new(PROXY, cluster.url(), upstream.base_url());
    let edge = Edge::start(options.env("TOLLGATE_STORE__TIMEOUT_MS", "1000"));
    let home = cluster
        .holder_known_to(0, store::keys::STORE)
        .expect("a node with the ledger's record");
    let policy = open_cap();
    let caller = loop {
        let (agent, key) = seed.ready_agent("enterprise", policy).await;
        if node_of(&cluster, &agent) != home {
            break edge.caller(&key);
        }
    };
    served(&caller).await;
    // Redis serves no other client while a script runs, so none gets in before its last command.
    let port = cluster.nodes()[home].port();
    let away = tokio::task::spawn_blocking(move || {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).expect("an address");
        let mut connection = client.get_connection().expect("a connection");
        redis::cmd("EVAL")
            .arg(AWAY)
            .arg(1)
            .arg(store::keys::STORE)
            .query::<i64>(&mut connection)
    });
    let mut slowest = Duration::ZERO;
    let mut calls = 0;
    while !away.is_finished() {
        let started = std::time::Instant::now();
        let reply = caller.chat(body()).await;
        if reply.status != 200 {
            // The edge can reach the node again before the waiting thread has reported it, which takes longer on a busy
            // machine. The script runs for several seconds, so a denial in its first ones still fails here.
            let until_reported = tokio::time::Instant::now() + Duration::from_secs(1);
            while !away.is_finished() && tokio::time::Instant::now() < until_reported {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(away.is_finished(), "an account elsewhere: {reply:?}");
            unavailable(&reply);
        } else if !away.is_finished() {
            calls += 1;
            slowest = slowest.max(started.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(away.await.expect("a task").expect("an answer"), 1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    unavailable(&caller.chat(body()).await);
    assert!(calls > 5, "{calls} calls, the slowest in {slowest:?}");
}
