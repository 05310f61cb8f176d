//! A master is down or hangs and is not replaced: its accounts are refused, and no other account waits for it.

use crate::deposits::Depositor;
use crate::fixture::{Fixture, MASTERS, SOON, call, cap};
use domain::id::IdKind;
use domain::mode::Mode;
use harness::{RedisCluster, eventually, until};
use serde_json::json;
use std::time::{Duration, Instant};

/// Number of API keys made, so that one is looked up on a node that answers.
const KEYS: usize = 12;
/// Life of a hold that is never settled.
const LIFE: Duration = Duration::from_millis(1);
/// Voids for the node that hangs. Without a fair order, each 32 of them would take one deadline of the store.
const VOIDS: usize = 640;
/// Time within which the void of another node reaches the store; all [`VOIDS`] would take far longer.
const IN_TIME: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_elsewhere_does_not_wait_for_a_master_that_hangs() {
    let always = ["--appendonly", "yes", "--appendfsync", "always"];
    let cluster = RedisCluster::start_replicated_as("", MASTERS, &always);
    let fixture = Fixture::on(cluster, 0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let (here, elsewhere) = (
        fixture.account_on(node).await,
        fixture.account_on((node + 1) % MASTERS).await,
    );
    let mut keys = Vec::new();
    for _ in 0..KEYS {
        keys.push((
            here.api_key(Mode::Test).await,
            elsewhere.api_key(Mode::Test).await,
        ));
    }
    fixture.cluster.nodes()[node].pause();
    // The server starts now, so it never reached the master that hangs.
    let admin = fixture.admin_at_once("aof");
    let (mut one, mut other) = (None, None);
    for (key_here, key_elsewhere) in &keys {
        let caller = admin.caller(key_elsewhere);
        if other.is_none() && caller.get("/v1/wallet").await.status == 200 {
            other = Some(Depositor {
                account: elsewhere.clone(),
                caller,
            });
        }
        one = Some(Depositor {
            account: here.clone(),
            caller: admin.caller(key_here),
        });
    }
    let (one, other) = (one.expect("a key"), other.expect("a key on a node that answers"));
    for round in 0..3 {
        other.must_deposit(&format!("{round}")).await;
        let refused = one.deposit(&format!("{round}")).await;
        assert_eq!(refused.status, 503, "{}", refused.text());
    }
    // Requests that wait for the hanging master take no capacity from others.
    let waiting = (0..100).map(|number| {
        let one = one.clone();
        async move { one.deposit(&format!("waiting-{number}")).await }
    });
    let waiting = tokio::spawn(futures::future::join_all(waiting));
    for number in 0..10 {
        other.must_deposit(&format!("meanwhile-{number}")).await;
    }
    drop(waiting.await);
    fixture.cluster.nodes()[node].resume();
    until("a deposit where the master is back", async || {
        one.deposit("back").await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_workers_go_on_for_the_accounts_of_the_others() {
    let fixture = Fixture::start(1).await;
    let node = fixture.home();
    let resident = fixture.resident_on((node + 1) % MASTERS, cap(None)).await;
    let (edge, admin) = (&fixture.edges[0], fixture.admin("auto"));
    let caller = edge.caller(&resident.key);
    let (key_id, _) = resident.agent.virtual_key_with_id().await;
    assert_eq!(caller.chat(call("before")).await.status, 200);
    let sealed = || admin.metric::<u64>("tollgate_admin_audit_entries_sealed_total");
    eventually("a sealed entry", SOON, async || (sealed()? > 0).then_some(())).await;
    resident.agent.open_hold(&key_id, 1, LIFE).await;
    until("a kept hold", async || resident.agent.kept_holds().await == 1).await;

    fixture.cluster.nodes()[node].kill9();
    resident.agent.open_hold(&key_id, 1, LIFE).await;
    until("a kept hold without the master", async || {
        resident.agent.kept_holds().await == 2
    })
    .await;
    let before = sealed().expect("the metric");
    assert_eq!(caller.chat(call("without the master")).await.status, 200);
    eventually("a sealed entry without the master", SOON, async || {
        (sealed()? > before).then_some(())
    })
    .await;
    let cut_off = admin.metric::<u64>("tollgate_admin_sweeps_failed_total");
    assert!(cut_off > Some(0), "failed sweeps are counted");
    // The edge serves the accounts of the other nodes, so its health is `ok`.
    for _ in 0..3 {
        let health = edge.caller("").get("/v1/health").await;
        assert_eq!(
            (health.status, health.json()["status"].clone()),
            (200, json!("ok"))
        );
        assert_eq!(caller.chat(call("served")).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_a_hanging_master_delays_nothing_else() {
    let fixture = Fixture::start(1).await;
    let node = (fixture.home() + 1) % MASTERS;
    let (here, elsewhere) = (
        fixture.account_on(node).await,
        fixture.account_on((node + 1) % MASTERS).await,
    );
    let ledger = store::sanity::record(&fixture.store).await.expect("a record");
    let line = |account: &str, number: usize| {
        let id = IdKind::Allow.mint(clock::now_ms()).expect("an id");
        let name = [account, "bot", &format!("r{number}"), &id];
        let as_of = json!({ "generation": 0, "version": 0 });
        json!({ "do": "void", "name": name, "epoch": ledger.epoch, "as_of": as_of }).to_string() + "\n"
    };
    let mut left: String = (0..VOIDS).map(|number| line(&here.id, number)).collect();
    left.push_str(&line(&elsewhere.id, 0));
    fixture.cluster.nodes()[node].pause();
    let dir = fixture.edges[0].dir().join("data");
    std::fs::write(dir.join("left.opening"), left).expect("a file");
    std::fs::rename(dir.join("left.opening"), dir.join("left.pending.jsonl")).expect("a journal");
    let pending = || fixture.edges[0].metric::<usize>("tollgate_proxy_pending");
    eventually("the left voids to be taken over", SOON, async || {
        (pending()? >= VOIDS).then_some(())
    })
    .await;
    let began = Instant::now();
    eventually("the void of the other node", SOON, async || {
        (pending()? == VOIDS).then_some(())
    })
    .await;
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    fixture.cluster.nodes()[node].resume();
    eventually("the other voids", SOON, async || (pending()? == 0).then_some(())).await;
}
