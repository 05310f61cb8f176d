//! One node of a cluster fails: its accounts are denied, the others are served, and nothing is lost.

use crate::stage::{ACTUAL, PROXY, SOON, answer, body, metric, unavailable};
use harness::{
    Caller, CapPolicy, Edge, EdgeOptions, RedisCluster, Seed, SeedAgent, Store, Upstream, eventually,
};
use std::time::Duration;

/// Nodes of the cluster.
const NODES: usize = 3;

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
    eventually("an approved call", SOON, async || {
        (caller.chat(body()).await.status == 200).then_some(())
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
        node.try_command::<u64>(&["EXISTS", shared::store::keys::STORE])
            .is_ok_and(|found| found == 1)
    });
    let home = home.expect("a node with the ledger's record");
    // One account on a node that can be frozen without the ledger's own record, one elsewhere.
    let (mut frozen, mut other) = (None, None);
    let policy = CapPolicy {
        enabled: true,
        ..CapPolicy::default()
    };
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
        eventually("an exact ledger", SOON, async || {
            let exact = agent.counters().await.day_nanos == nanos && agent.open_holds().await == 0;
            (exact && metric(&edge, "tollgate_proxy_pending") == 0).then_some(())
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
    assert_eq!(
        fine_caller.chat(body()).await.status,
        200,
        "the other account is not touched"
    );
    cluster.nodes()[node].resume();
    settled(&agent, ACTUAL).await;
    served(&caller).await;
    settled(&agent, 2 * ACTUAL).await;
    settled(&fine, 2 * ACTUAL).await;
    assert_eq!(upstream.arrived(), before + 2);
}
