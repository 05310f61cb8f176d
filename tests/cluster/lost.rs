//! A failover that loses writes: every server that knew a higher version refuses the account until the operator
//! accepts.

use crate::fixture::{MASTERS, SOON, World, accept, call, cap};
use harness::{eventually, until};

/// Calls whose charges the replica never receives.
const UNHEARD: usize = 5;
/// Log line of the edge.
const LOST_WRITES: &str = "the store lost writes of this account";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_lost_writes_waits_for_the_operator() {
    let world = World::start(1).await;
    let node = (world.home() + 1) % MASTERS;
    let replica = world.cluster.replica_of(node);
    let loser = world.resident_on(node, cap(None)).await;
    let keeper = world.resident_on(world.home(), cap(None)).await;
    let record = loser.agent.account.keys.record();
    let (caller, other) = (
        world.edges[0].caller(&loser.key),
        world.edges[0].caller(&keeper.key),
    );
    assert_eq!(caller.chat(call("heard of")).await.status, 200);
    let received = loser.agent.counters().await.day_nanos;
    world.cluster.wait_in_step(replica);
    world.cluster.cut_off(replica);
    for number in 0..UNHEARD {
        let reply = caller.chat(call(&format!("unheard of {number}"))).await;
        assert_eq!(reply.status, 200);
    }
    world.cluster.lose(node, &record);
    world.found_again(&record).await;

    // The charges are gone, so the account must not spend: the edge knows a higher version.
    until("the charges of before", async || {
        loser.agent.counters().await.day_nanos == received
    })
    .await;
    let arrived = world.upstream.arrived();
    let denied = eventually("an answer of the new master", SOON, async || {
        let reply = caller.chat(call("after")).await;
        let why = world.edges[0].logs();
        (reply.status == 503 && why.contains("lost writes")).then_some(reply)
    })
    .await;
    assert_eq!(denied.header("x-service-reason"), Some("service_unavailable"));
    assert_eq!(other.chat(call("elsewhere")).await.status, 200);
    assert_eq!(
        world.upstream.arrived(),
        arrived + 1,
        "only the other account was served"
    );

    for number in 0..UNHEARD {
        let reply = caller.chat(call(&format!("still denied {number}"))).await;
        assert_eq!(reply.status, 503);
    }
    let logs = world.edges[0].logs();
    let lines = logs.lines().filter(|line| line.contains(LOST_WRITES));
    assert_eq!(lines.count(), 1, "one line an account, not one a call: {logs}");

    accept(&world, &loser.agent.account);
    assert_eq!(caller.chat(call("accepted")).await.status, 200);
    assert_eq!(
        loser.agent.counters().await.day_nanos,
        received + crate::fixture::COST
    );
    assert_eq!(world.edges[0].ops("/readyz").expect("readiness").0, 200);
}
