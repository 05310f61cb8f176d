//! One master of a cluster has a wrong clock, and others do not. A wire in front of it changes the time in its replies.

use crate::fixture::{Fixture, MASTERS, SOON, call, cap};
use harness::{Wire, eventually, until};

const DAYS: i64 = 3 * 86_400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_master_with_a_wrong_clock_denies_all_also_while_another_is_away() {
    let mut fixture = Fixture::start(0).await;
    let (home, node) = (fixture.home(), (fixture.home() + 1) % MASTERS);
    let nodes = fixture.cluster.nodes();
    let wire = Wire::to_port(nodes[node].port());
    let port = wire.addr().port().to_string();
    let _: String = nodes[node].command(&["CONFIG", "SET", "cluster-announce-port", &port]);
    let listed = format!("127.0.0.1:{port}@");
    until("nodes that know the address of the wire", async || {
        let knows = |node: &harness::Redis| node.command::<String>(&["CLUSTER", "NODES"]).contains(&listed);
        nodes.iter().all(knows)
    })
    .await;
    fixture.edges.push(fixture.edge());
    let elsewhere = fixture.resident_on((node + 1) % MASTERS, cap(None)).await;
    let other = (0..MASTERS)
        .find(|at| ![home, node].contains(at))
        .expect("a third");
    let third = fixture.resident_on(other, cap(None)).await;
    let edge = &fixture.edges[0];
    let admin = fixture.admin("auto");
    let denied = async |key: &str| {
        let caller = edge.caller(key);
        until("a denial", async || {
            caller.chat(call("wrong")).await.status == 503
        })
        .await;
    };
    let approved = async |key: &str| {
        let caller = edge.caller(key);
        until("an approval", async || {
            caller.chat(call("right")).await.status == 200
        })
        .await;
    };
    // Resolve both keys while all nodes are up: a look-up may be on any of them.
    for resident in [&elsewhere, &third] {
        approved(&resident.key).await;
    }
    wire.move_clock(DAYS);
    for resident in [&elsewhere, &third] {
        denied(&resident.key).await;
    }
    eventually("a server that names the master", SOON, async || {
        let (status, reason) = admin.ops("/readyz")?;
        (status == 503 && reason.contains(&format!("clock of 127.0.0.1:{port} is"))).then_some(())
    })
    .await;
    assert!(edge.logs().contains(&format!("clock of 127.0.0.1:{port} is")));
    wire.move_clock(0);
    approved(&elsewhere.key).await;

    // Without the node of the ledger's record, the other nodes serve and are still checked.
    fixture.cluster.nodes()[home].pause();
    approved(&third.key).await;
    wire.move_clock(-DAYS);
    denied(&third.key).await;
    wire.move_clock(0);
    fixture.cluster.nodes()[home].resume();
    approved(&third.key).await;
    eventually("a server that is ready", SOON, async || {
        (admin.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
}
