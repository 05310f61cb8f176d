//! A failover that loses writes: every server that knew a higher version refuses the account until the operator
//! accepts.

use crate::fixture::{Fixture, MASTERS, SOON, accept, call, cap};
use harness::{eventually, until};

/// Calls whose charges the replica never receives.
const UNHEARD: usize = 5;
/// Log line of the edge.
const LOST_WRITES: &str = "the store lost writes of this account";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_lost_writes_waits_for_the_operator() {
    let fixture = Fixture::start(1).await;
    let node = (fixture.home() + 1) % MASTERS;
    let replica = fixture.cluster.replica_of(node);
    let loser = fixture.resident_on(node, cap(None)).await;
    let keeper = fixture.resident_on(fixture.home(), cap(None)).await;
    let record = loser.agent.account.keys.record();
    let (caller, other) = (
        fixture.edges[0].caller(&loser.key),
        fixture.edges[0].caller(&keeper.key),
    );
    assert_eq!(caller.chat(call("heard of")).await.status, 200);
    let received = loser.agent.counters().await.day_nanos;
    fixture.cluster.wait_in_step(replica);
    fixture.cluster.cut_off(replica);
    for number in 0..UNHEARD {
        let reply = caller.chat(call(&format!("unheard of {number}"))).await;
        assert_eq!(reply.status, 200);
    }
    fixture.cluster.lose(node, &record);
    fixture.found_again(&record).await;

    // The charges are gone, so the account must not spend: the edge knows a higher version.
    until("the charges of before", async || {
        loser.agent.counters().await.day_nanos == received
    })
    .await;
    let arrived = fixture.upstream.arrived();
    let denied = eventually("an answer of the new master", SOON, async || {
        let reply = caller.chat(call("after")).await;
        let why = fixture.edges[0].logs();
        (reply.status == 503 && why.contains("lost writes")).then_some(reply)
    })
    .await;
    assert_eq!(denied.header("x-service-reason"), Some("service_unavailable"));
    assert_eq!(other.chat(call("elsewhere")).await.status, 200);
    assert_eq!(
        fixture.upstream.arrived(),
        arrived + 1,
        "only the other account was served"
    );

    for number in 0..UNHEARD {
        let reply = caller.chat(call(&format!("still denied {number}"))).await;
        assert_eq!(reply.status, 503);
    }
    let logs = fixture.edges[0].logs();
    let lines = logs.lines().filter(|line| line.contains(LOST_WRITES));
    assert_eq!(lines.count(), 1, "one line an account, not one a call: {logs}");

    accept(&fixture, &loser.agent.account);
    assert_eq!(caller.chat(call("accepted")).await.status, 200);
    assert_eq!(
        loser.agent.counters().await.day_nanos,
        received + crate::fixture::COST
    );
    assert_eq!(fixture.edges[0].ops("/readyz").expect("readiness").0, 200);
}
