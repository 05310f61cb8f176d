//! Many streams at once: exact counts, exact sums, also when an edge is killed in the middle of them.

use crate::stage::{HELD, SOON, Stage, chunk, daily, open_cap, options, usage_frame};
use harness::{Edge, Script, eventually};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;

const STREAMS: usize = 100;

/// Money for so many of them: exactly so many start, over two edges.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_as_many_start_as_there_is_money_for() {
    const ROOM: u64 = 37;
    let stage = Stage::new().await;
    let other = Edge::start(options(&stage.redis, &stage.upstream));
    let actor = stage.actor(daily(ROOM * HELD)).await;
    let gate = Arc::new(Notify::new());
    stage.provider_streams(
        Script::new()
            .send(chunk("begins"))
            .wait_for(&gate)
            .send(usage_frame(12))
            .event("[DONE]"),
    );
    let addresses = [stage.edge.addr(), other.addr()];
    let calls = (0..STREAMS).map(|at| {
        let (key, address) = (actor.key.clone(), addresses[at % 2]);
        tokio::spawn(async move {
            let body = crate::stage::body(json!({}));
            crate::caller::Stream::open(address, "/v1/chat/completions", &key, "", body).await
        })
    });
    let mut started = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        let stream = call.await.unwrap();
        match stream.status() {
            200 => started.push(stream),
            status => assert_eq!(status, 402),
        }
    }
    assert_eq!(started.len() as u64, ROOM);
    // Some leave, some stay.
    let mut stay = Vec::new();
    for (at, stream) in started.into_iter().enumerate() {
        match at % 3 {
            0 => stream.reset(),
            _ => stay.push(stream),
        }
    }
    let opening = crate::stage::open_gate(&gate);
    for mut stream in stay {
        assert!(stream.rest().await.ends_with("[DONE]\n\n"));
    }
    assert_eq!(actor.settled().await, ROOM * 12);
    opening.abort();
}

/// An edge that is killed in the middle of streams: their estimates stay charged, and the reaper makes them visible.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_edge_leaves_the_estimates_charged() {
    let stage = Stage::with(|options| {
        options
            .env("TOLLGATE_PROXY__STREAM_TOTAL_MS", "25000")
            .env("TOLLGATE_PROXY__STREAM_DRAIN_MS", "100")
            .env("TOLLGATE_PROXY__HOLD_GRACE_MS", "1000")
            .env("TOLLGATE_UPSTREAM__TIMEOUT_MS", "1000")
    })
    .await;
    let actor = stage.actor(open_cap()).await;
    stage.provider_streams(Script::new().send(chunk("begins")).hang());
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = stage.open(&actor, json!({})).await;
        stream.until("begins").await;
        streams.push(stream);
    }
    stage.edge.kill9();
    let begun = streams.len() as u64;
    assert_eq!(actor.agent.counters().await.day_nanos, begun * HELD);
    assert_eq!(actor.agent.open_holds().await, begun);
    let _next = Edge::start(options(&stage.redis, &stage.upstream));
    let admin = harness::Admin::start(harness::AdminOptions::new(
        env!("CARGO_BIN_EXE_tollgate-admin"),
        stage.redis.url(),
    ));
    eventually("the reaper", SOON * 3, async || {
        let kept = actor.agent.kept_holds().await;
        (kept == begun && actor.agent.open_holds().await == 0).then_some(())
    })
    .await;
    assert_eq!(actor.agent.counters().await.day_nanos, begun * HELD);
    drop(admin);
}
