//! When the ledger moves: before the answer ends (decision D48). Callers who leave and a store that is gone are in
//! `tests/faults`.

use super::fixture::{Fixture, SOON, cap, estimated_body, open_cap};
use super::shape::denied;
use harness::Answer;
use std::sync::Arc;
use tokio::sync::Notify;

const ESTIMATE: u64 = 100;
/// The cost of the usage 9 + 12.
const ACTUAL: u64 = 12;

/// The settlement is done before the answer ends: the next call, on whichever edge, has the room that it left.
#[tokio::test]
async fn the_next_call_sees_the_settlement() {
    let fixture = Fixture::new().await;
    let other = fixture.another_edge();
    // The cap allows the cost of ten calls and one more estimate, so each call needs all that its predecessors left.
    let actor = fixture
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

/// A hold has the data from which its charge can be recomputed (decision D48): the version of the price table, and the
/// model.
#[tokio::test]
async fn an_open_hold_records_the_prices_behind_it() {
    let fixture = Fixture::alone().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let gate = Arc::new(Notify::new());
    let answer = Answer::chat(9, 12).wait_for(&gate);
    fixture.upstream.set(move |_| answer.clone());
    let caller = actor.caller.clone();
    let call = tokio::spawn(async move { caller.chat(estimated_body(ESTIMATE)).await });
    fixture.upstream.wait_for(1, SOON).await;
    let bucket = actor.agent.account.keys.bucket();
    let open: Vec<String> = fixture.redis.command(&["ZRANGE", &bucket.due(), "0", "-1"]);
    let hold: String = fixture.redis.command(&["GET", &bucket.hold(&open[0])]);
    gate.notify_one();
    let reply = call.await.expect("an answer");
    assert_eq!(
        reply.header("x-service-allow-id"),
        Some(open[0].as_str()),
        "the hold has the id of the decision"
    );
    let table = std::fs::read_to_string(super::fixture::PRICES).expect("the price table");
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
