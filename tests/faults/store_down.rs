//! A store that is not there, stopped, slow, or was restarted: every call is denied within the store's deadline, and
//! served again without a restart of the edge.

use crate::fixture::{ACTUAL, PROXY, SOON, Setup, answer, unavailable};
use harness::{Caller, Edge, EdgeOptions, Redis, Seed, Upstream, Wire, eventually, open_cap, until};
use std::time::{Duration, Instant};

/// The store's deadline in these tests.
const TIMEOUT_MS: u64 = 400;
/// A denial for want of the store takes at most the deadline of each step and this, on a slow machine.
const SLACK: Duration = Duration::from_secs(5);

fn setup() -> Setup {
    Setup::default().env("STORE__TIMEOUT_MS", TIMEOUT_MS)
}

async fn health(caller: &Caller) -> (u16, String, String) {
    let reply = caller.get("/v1/health").await;
    let body = reply.json();
    assert_eq!(body["failClosed"], true);
    let word = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    (reply.status, word("status"), word("decisions"))
}

fn words(status: u16, state: &str, decisions: &str) -> (u16, String, String) {
    (status, state.to_owned(), decisions.to_owned())
}

#[tokio::test]
async fn an_edge_that_starts_without_a_store_denies_until_there_is_one() {
    let redis = Redis::start();
    let wire = Wire::to_port(redis.port());
    wire.refuse(true);
    let upstream = Upstream::start(|_| answer());
    let options = EdgeOptions::new(PROXY, wire.redis_url(), upstream.base_url()).until_alive();
    let edge = Edge::start(options.env("TOLLGATE_STORE__TIMEOUT_MS", TIMEOUT_MS.to_string()));
    let nobody = edge.caller(&format!("vk_live_{}", "0".repeat(64)));
    let body = crate::fixture::body();
    unavailable(&nobody.chat(body.clone()).await);
    assert_eq!(health(&nobody).await, words(503, "degraded", "unavailable"));
    assert_eq!(edge.ops("/readyz").map(|(status, _)| status), Some(503));
    assert_eq!(edge.ops("/livez").map(|(status, _)| status), Some(200));

    // There is a store now, but it is no ledger yet.
    wire.refuse(false);
    unavailable(&nobody.chat(body.clone()).await);
    assert_eq!(health(&nobody).await, words(503, "degraded", "unavailable"));

    let policy = open_cap();
    let (bot, key) = Seed::new(&redis.store())
        .await
        .ready_agent("builder", policy)
        .await;
    let caller = edge.caller(&key);
    until("an approved call", async || {
        caller.chat(body.clone()).await.status == 200
    })
    .await;
    assert_eq!(health(&caller).await, words(200, "ok", "available"));
    eventually("readiness", SOON, async || {
        (edge.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
    let reply = nobody.chat(body).await;
    assert_eq!(reply.status, 401, "a ledger without this key answers now");
    assert_eq!(upstream.arrived(), 1);
    assert_eq!(bot.counters().await.day_nanos, ACTUAL);
}

#[tokio::test]
async fn a_killed_store_denies_and_a_restarted_one_serves() {
    let fixture = setup().redis(Redis::start_durable()).start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    fixture.redis.kill9();
    for _ in 0..5 {
        let started = Instant::now();
        fixture.unavailable_call().await;
        assert!(started.elapsed() < SLACK, "{:?}", started.elapsed());
    }
    let caller = fixture.edge.caller(&fixture.key);
    assert_eq!(health(&caller).await, words(503, "degraded", "unavailable"));
    unavailable(&caller.get("/v1/models").await);
    fixture.redis.restart();
    fixture.recovered().await;
    fixture.settled_at(2 * ACTUAL).await;
    assert_eq!(fixture.upstream.arrived(), 2);
}

/// The store is frozen with requests in its sockets, and executes them when no caller waits any more.
#[tokio::test]
async fn a_frozen_store_charges_nothing_in_the_end() {
    let fixture = setup().start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    for round in 1..=2 {
        fixture.redis.pause();
        let calls = (0..10).map(|_| async {
            let started = Instant::now();
            fixture.unavailable_call().await;
            started.elapsed()
        });
        for took in futures::future::join_all(calls).await {
            assert!(took >= Duration::from_millis(TIMEOUT_MS), "it waited: {took:?}");
            assert!(took < Duration::from_millis(TIMEOUT_MS) + SLACK, "{took:?}");
        }
        assert!(
            fixture.metric("tollgate_proxy_pending") > 0,
            "lost approvals are to be voided"
        );
        fixture.redis.resume();
        fixture.settled_at(round * ACTUAL).await;
        fixture.recovered().await;
    }
    fixture.settled_at(3 * ACTUAL).await;
    assert_eq!(fixture.upstream.arrived(), 3);
}

/// The edge loses its connections to the frozen store, which then reads the requests from closed sockets.
#[tokio::test]
async fn a_frozen_store_charges_nothing_to_callers_it_lost() {
    let fixture = setup().wired().start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    fixture.redis.pause();
    let calls = (0..10).map(|_| fixture.unavailable_call());
    let ((), _) = futures::future::join(
        async {
            tokio::time::sleep(Duration::from_millis(TIMEOUT_MS / 2)).await;
            fixture.wire().cut();
        },
        futures::future::join_all(calls),
    )
    .await;
    fixture.redis.resume();
    fixture.settled_at(ACTUAL).await;
    fixture.recovered().await;
    fixture.settled_at(2 * ACTUAL).await;
}

#[tokio::test]
async fn a_slow_store_is_waited_for_within_its_deadline() {
    let fixture = setup().wired().start().await;
    fixture.approved_call().await;
    fixture
        .wire()
        .delay_replies(Duration::from_millis(TIMEOUT_MS / 4));
    fixture.approved_call().await;
    fixture
        .wire()
        .delay_replies(Duration::from_millis(3 * TIMEOUT_MS));
    fixture.unavailable_call().await;
    fixture.wire().heal();
    fixture.recovered().await;
    fixture.settled_at(3 * ACTUAL).await;
    assert_eq!(fixture.upstream.arrived(), 3);
}

#[tokio::test]
async fn a_store_that_comes_and_goes_loses_nothing() {
    let fixture = setup().redis(Redis::start_durable()).start().await;
    for round in 1..=3 {
        fixture.recovered().await;
        fixture.redis.restart();
        fixture.recovered().await;
        fixture.settled_at(2 * round * ACTUAL).await;
    }
    assert_eq!(fixture.upstream.arrived(), 6, "one request for each approval");
}
