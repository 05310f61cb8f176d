//! A call whose account loses its master between hold and settlement, or between settlement and answer. Neither is
//! confirmed; a lost settlement leaves the estimate charged.

use super::stopped_change::{AlwaysAllowed, hash};
use super::{ON_THE_WIRE, PAUSE, load_scripts};
use crate::fixture::{COST, Fixture, MASTERS, call, cap};
use crate::lost_master::{accept_all, conclusion};
use harness::{Gate, GateSide, RedisCluster, until};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_call_is_charged_once_whichever_step_its_master_is_lost_after() {
    let fixture = Fixture::on(RedisCluster::start_wired(MASTERS), 0).await;
    load_scripts(&fixture.cluster);
    let node = (fixture.home() + 1) % MASTERS;
    let replica = fixture.cluster.replica_of(node);
    let (mut rows, mut sent) = (Vec::new(), Vec::new());
    for side in [GateSide::Request, GateSide::Reply] {
        for goes_on in [AlwaysAllowed::Before, AlwaysAllowed::After] {
            // Calls of one edge share its connection to a master, so each call has its own edge.
            let edge = fixture.patient_edge();
            let resident = fixture.resident_on(node, cap(None)).await;
            let gate = Gate::new(side, &[&hash("settle"), &resident.agent.account.id], 0, 1);
            fixture.cluster.put_gate(&gate);
            let caller = edge.caller(&resident.key);
            sent.push(tokio::spawn(async move { caller.chat(call("stopped")).await }));
            until("a call at its gate", async || gate.stopped() > 0).await;
            rows.push((edge, resident, gate, goes_on));
        }
    }
    fixture.cluster.wait_in_step(replica);
    tokio::time::sleep(ON_THE_WIRE).await;
    fixture.cluster.cut_off(replica);
    let open = |when: AlwaysAllowed| {
        let due = rows.iter().filter(|(.., goes_on)| *goes_on == when);
        due.for_each(|(_, _, gate, _)| gate.open());
    };
    open(AlwaysAllowed::Before);
    for (call, (.., goes_on)) in sent.iter().zip(&rows) {
        while *goes_on == AlwaysAllowed::Before && !call.is_finished() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    let key = rows[0].1.agent.account.keys.record();
    fixture.cluster.lose(node, &key);
    open(AlwaysAllowed::After);
    for call in sent {
        assert_eq!(call.await.expect("an answer").status, 200);
    }
    assert_eq!(fixture.upstream.arrived(), rows.len(), "each call was sent once");

    fixture.cluster.restart(node);
    fixture.cluster.wait_for_replica(node);
    fixture.found_again(&key).await;
    accept_all(&fixture);
    for (edge, resident, ..) in &rows {
        assert_eq!(
            resident.agent.counters().await.day_nanos,
            COST,
            "each call is charged once"
        );
        let caller = edge.caller(&resident.key);
        until("another call", async || {
            caller.chat(call("next")).await.status == 200
        })
        .await;
        assert_eq!(resident.agent.counters().await.day_nanos, 2 * COST);
    }
    let check = conclusion(&fixture).await;
    assert_eq!(check["ok"], json!(true), "{check}");
}
