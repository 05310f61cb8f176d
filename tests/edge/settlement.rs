//! When the ledger moves: before the answer ends, even if the caller leaves, and later when the store is gone
//! (decisions D36, D48).

use super::shape::denied;
use super::stage::{SOON, Stage, amounts, cap, estimated_body, open_cap};
use harness::{Answer, RawClient, Redis, eventually};
use std::sync::Arc;
use tokio::sync::Notify;

const ESTIMATE: u64 = 100;
/// The cost of the usage 9 + 12.
const ACTUAL: u64 = 12;

/// The settlement is done before the answer ends: the next call, on whichever edge, has the room that it left.
#[tokio::test]
async fn the_next_call_sees_the_settlement() {
    let stage = Stage::new().await;
    let other = stage.another_edge();
    // The cap allows the cost of ten calls and one more estimate, so each call needs all that its predecessors left.
    let actor = stage
        .actor("enterprise", cap(None, Some(9 * ACTUAL + ESTIMATE), None))
        .await;
    let edges = [actor.caller.clone(), other.caller(&actor.key)];
    for round in 0..10 {
        let reply = edges[round % 2].chat(estimated_body(ESTIMATE)).await;
        assert_eq!(reply.status, 200, "call {round}: {reply:?}");
    }
    denied(&actor.caller.chat(estimated_body(ESTIMATE)).await, "daily_limit");
    assert_eq!(actor.agent.counters().await.day_nanos, 10 * ACTUAL);
}

/// A caller who hangs up does not stop the settlement (decision D36).
#[tokio::test]
async fn a_caller_who_hangs_up_pays_what_it_cost() {
    let stage = Stage::alone().await;
    for reset in [true, false] {
        let actor = stage.actor("enterprise", open_cap()).await;
        let gate = Arc::new(Notify::new());
        let (answer, arrived) = (Answer::chat(9, 12).wait_for(&gate), stage.upstream.arrived());
        stage.upstream.set(move |_| answer.clone());
        let mut raw = RawClient::connect(stage.edge.addr()).await;
        raw.send_chat(&actor.key, "", estimated_body(ESTIMATE).to_string().as_bytes())
            .await;
        stage.upstream.wait_for(arrived + 1, SOON).await;
        assert_eq!(
            actor.agent.counters().await.day_nanos,
            ESTIMATE,
            "the estimate is charged before the call"
        );
        if reset {
            raw.reset();
        } else {
            drop(raw);
        }
        gate.notify_one();
        eventually("the settlement", SOON, async || {
            (actor.agent.counters().await.day_nanos == ACTUAL).then_some(())
        })
        .await;
        assert_eq!(actor.agent.open_holds().await, 0);
        assert_eq!(stage.upstream.arrived(), arrived + 1);
    }
}

/// When the store is gone by the time of the settlement, the answer goes out all the same, and the ledger follows
/// later.
#[tokio::test]
async fn a_settlement_waits_for_the_store() {
    let redis = Arc::new(Redis::start());
    let stage = Stage::on(redis, |options| options.env("TOLLGATE_STORE__TIMEOUT_MS", "1000")).await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let gate = Arc::new(Notify::new());
    let answer = Answer::chat(9, 12).wait_for(&gate);
    stage.upstream.set(move |_| answer.clone());
    let caller = actor.caller.clone();
    let call = tokio::spawn(async move { caller.chat(estimated_body(ESTIMATE)).await });
    stage.upstream.wait_for(1, SOON).await;
    stage.redis.pause();
    gate.notify_one();
    let reply = call.await.expect("an answer");
    assert_eq!((reply.status, amounts(&reply).1), (200, Some(ACTUAL)));
    let reply = actor.caller.chat(estimated_body(ESTIMATE)).await;
    denied(&reply, "service_unavailable");
    stage.redis.resume();
    eventually("the settlement", SOON, async || {
        let counters = actor.agent.counters().await;
        (counters.day_nanos == ACTUAL && actor.agent.open_holds().await == 0).then_some(())
    })
    .await;
    assert_eq!(stage.upstream.arrived(), 1);
}

/// A hold has the data from which its charge can be recomputed (decision D48): the version of the price table, and the
/// model.
#[tokio::test]
async fn an_open_hold_records_the_prices_behind_it() {
    let stage = Stage::alone().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let gate = Arc::new(Notify::new());
    let answer = Answer::chat(9, 12).wait_for(&gate);
    stage.upstream.set(move |_| answer.clone());
    let caller = actor.caller.clone();
    let call = tokio::spawn(async move { caller.chat(estimated_body(ESTIMATE)).await });
    stage.upstream.wait_for(1, SOON).await;
    let bucket = actor.agent.account.keys.bucket();
    let open: Vec<String> = stage.redis.command(&["ZRANGE", &bucket.due(), "0", "-1"]);
    let hold: String = stage.redis.command(&["GET", &bucket.hold(&open[0])]);
    gate.notify_one();
    let reply = call.await.expect("an answer");
    assert_eq!(
        reply.header("x-service-allow-id"),
        Some(open[0].as_str()),
        "the hold has the id of the decision"
    );
    let table = std::fs::read_to_string(super::stage::PRICES).expect("the price table");
    let table = domain::price::PriceTable::from_toml(&table).expect("the price table");
    for part in [
        ESTIMATE.to_string().as_str(),
        table.version(),
        "nano",
        &actor.key_id,
    ] {
        assert!(hold.contains(part), "{part} in {hold}");
    }
}
