//! Callers who leave at the edges of a stream: before its head, behind its usage, while the call is settled, while its
//! hold grows, and in the middle of a response.

use crate::fixture::{
    Fixture, HELD, SOON, body, chunk, daily, finish, finish_response, open_cap, response_delta, usage_frame,
};
use harness::{Answer, EventStream, Feed, RawClient, Script, until};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;

/// More than the edge's health checks send to a store that does not answer, and less than a command of a call.
const HEALTH_CHECKS_BYTES: usize = 400;

/// Waits until the edge has noticed that the caller has left.
async fn noticed(fixture: &Fixture) {
    until("the end of the caller's connection", async || {
        fixture.metric("tollgate_proxy_connections").await == 0
    })
    .await;
}

/// The caller leaves, with a reset or an orderly end, and the edge notices it.
async fn leave(fixture: &Fixture, stream: EventStream, reset: bool) {
    match reset {
        true => stream.reset(),
        false => drop(stream),
    }
    noticed(fixture).await;
}

/// The provider has the request and has not answered: the call continues without its caller, whose absence the edge
/// notices when it has something to write.
#[tokio::test]
async fn a_caller_who_leaves_before_the_head_pays_the_real_cost() {
    let fixture = Fixture::new().await;
    let sent = body(json!({})).to_string();
    for (calls, reset) in [(1, true), (2, false)] {
        let actor = fixture.actor("enterprise", open_cap()).await;
        let (gate, feed) = (Arc::new(Notify::new()), Feed::new());
        let answer = Answer::stream(Script::new().feed(&feed)).wait_for(&gate);
        fixture.upstream.set(move |_| answer.clone());
        let mut caller = RawClient::connect(fixture.edge.addr()).await;
        assert!(caller.send_chat(&actor.key, "", sent.as_bytes()).await);
        fixture.upstream.wait_for(calls, SOON).await;
        match reset {
            true => caller.reset(),
            false => drop(caller),
        }
        gate.notify_one();
        feed.send(chunk("one"));
        noticed(&fixture).await;
        assert_eq!(actor.agent.counters().await.day_nanos, HELD, "what is held stays");
        finish(&feed, 12);
        assert_eq!(actor.settled().await, 12, "reset: {reset}");
    }
}

/// The usage has passed, and `[DONE]` has not: the usage counts, whether `[DONE]` comes or the provider breaks off.
#[tokio::test]
async fn a_caller_who_leaves_behind_the_usage_pays_the_real_cost() {
    let fixture = Fixture::new().await;
    for (reset, is_whole) in [(true, true), (false, true), (true, false)] {
        let (actor, feed) = fixture.fed_actor().await;
        let with_usage = json!({ "stream_options": { "include_usage": true } });
        let mut stream = fixture.open(&actor, with_usage).await;
        feed.send(chunk("one"));
        feed.send(usage_frame(12));
        stream.until("completion_tokens").await;
        leave(&fixture, stream, reset).await;
        assert_eq!(actor.agent.counters().await.day_nanos, HELD, "not settled yet");
        match is_whole {
            true => {
                feed.event("[DONE]");
                feed.end();
            }
            false => feed.break_off(),
        }
        assert_eq!(actor.settled().await, 12, "{reset} {is_whole}");
    }
}

/// `[DONE]` has come and the usage has not: `[DONE]` waits for it, and the usage counts if it comes in time.
#[tokio::test]
async fn a_caller_who_leaves_between_the_end_and_the_usage_pays_the_real_cost() {
    let fixture = Fixture::new().await;
    for (reset, has_usage) in [(true, true), (false, true), (true, false), (false, false)] {
        let (actor, feed, mut stream) = fixture.open_fed().await;
        // In one piece, so that the edge has read `[DONE]` when the text passes.
        feed.send(chunk("one") + "data: [DONE]\n\n");
        stream.until("one").await;
        assert!(!stream.body.contains("[DONE]"), "it waits: {}", stream.body);
        leave(&fixture, stream, reset).await;
        assert_eq!(actor.agent.counters().await.day_nanos, HELD, "not settled yet");
        if has_usage {
            feed.send(usage_frame(12));
            feed.end();
        }
        let charge = if has_usage { 12 } else { HELD };
        assert_eq!(
            actor.settled().await,
            charge,
            "reset: {reset}, usage: {has_usage}"
        );
        feed.end();
    }
}

/// `[DONE]` waits for the settlement, and the settlement for the store; the caller leaves meanwhile.
#[tokio::test]
async fn a_caller_who_leaves_while_the_call_is_settled_pays_the_real_cost() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_STORE__TIMEOUT_MS", "60000")).await;
    for (calls, reset) in [(1, true), (2, false)] {
        let (actor, feed, mut stream) = fixture.open_fed().await;
        feed.send(chunk("one"));
        stream.until("one").await;
        fixture.redis.pause();
        finish(&feed, 12);
        // The metric counts the end before the ledger shows the settlement.
        until("the last event at the edge", async || {
            let completed = fixture.metric("tollgate_proxy_streams_total{end=\"completed\"}");
            completed.await == calls
        })
        .await;
        leave(&fixture, stream, reset).await;
        fixture.redis.resume();
        assert_eq!(actor.settled().await, 12, "reset: {reset}");
    }
}

/// The hold grows while the caller leaves: the call is settled to its real cost, as any other.
#[tokio::test]
async fn a_caller_who_leaves_while_the_hold_grows_pays_the_real_cost() {
    let fixture = Fixture::with(|options| {
        options
            .env("TOLLGATE_PROXY__STREAM_EXTEND", "true")
            .env("TOLLGATE_STORE__TIMEOUT_MS", "60000")
    })
    .await;
    for reset in [true, false] {
        let (actor, feed, mut stream) = fixture.open_fed().await;
        feed.send(chunk("one"));
        stream.until("one").await;
        fixture.redis.pause();
        // More than three quarters of what is held.
        feed.send(chunk(&"four".repeat(1000)));
        until("the command that raises the hold", async || {
            fixture.redis.unread_bytes() > HEALTH_CHECKS_BYTES
        })
        .await;
        leave(&fixture, stream, reset).await;
        fixture.redis.resume();
        until("the larger hold", async || {
            actor.agent.counters().await.day_nanos == 2 * HELD
        })
        .await;
        finish(&feed, 1200);
        assert_eq!(actor.settled().await, 1200, "reset: {reset}");
    }
}

/// The cap also holds after the caller has left: the provider is not read beyond it.
#[tokio::test]
async fn a_caller_who_leaves_does_not_stop_the_growth() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__STREAM_EXTEND", "true")).await;
    let tokens = |count: usize| chunk(&"four".repeat(count));
    for reset in [true, false] {
        let actor = fixture.actor("enterprise", daily(2 * HELD)).await;
        let feed = Feed::new();
        fixture.provider_streams(Script::new().feed(&feed));
        let mut stream = fixture.open(&actor, json!({})).await;
        feed.send(chunk("one"));
        stream.until("one").await;
        match reset {
            true => stream.reset(),
            false => drop(stream),
        }
        feed.send(tokens(1000));
        until("the larger hold", async || {
            actor.agent.counters().await.day_nanos == 2 * HELD
        })
        .await;
        feed.send(tokens(1000));
        feed.wait_for_peer_gone(SOON).await;
        assert_eq!(actor.settled().await, 2 * HELD, "reset: {reset}");
    }
}

/// The usage of a response is in its last event.
#[tokio::test]
async fn a_caller_who_leaves_a_response_pays_the_real_cost() {
    let fixture = Fixture::new().await;
    for reset in [true, false] {
        let (actor, feed) = fixture.fed_actor().await;
        let mut stream = fixture.open_response(&actor).await;
        feed.send(response_delta("one"));
        stream.until("one").await;
        leave(&fixture, stream, reset).await;
        assert_eq!(actor.agent.counters().await.day_nanos, HELD, "what is held stays");
        feed.send(response_delta("two"));
        finish_response(&feed, 12);
        assert_eq!(actor.settled().await, 12, "reset: {reset}");
    }
    // Without its last event a response costs the held amount.
    let (actor, feed) = fixture.fed_actor().await;
    let stream = fixture.open_response(&actor).await;
    stream.reset();
    feed.send(response_delta("one"));
    feed.break_off();
    assert_eq!(actor.settled().await, HELD);
}
