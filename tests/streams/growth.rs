//! Holds that grow with their streams. A call of `nano` without a limit holds 1,024 tokens, a nano-USD each; at three
//! quarters of what is held another 1,024 are held, if Cap and the plan allow it.

use crate::fixture::{
    Actor, Fixture, HELD, SOON, chunk, daily, failed_with, finish, finish_response, open_cap, response_delta,
    usage, usage_frame,
};
use harness::{CapPolicy, EdgeOptions, EventStream, Feed, Nanos, Script, until};
use serde_json::json;

async fn fixture() -> Fixture {
    Fixture::with(|options| options.env("TOLLGATE_PROXY__STREAM_EXTEND", "true")).await
}

/// A text of `count` tokens.
fn tokens(count: usize) -> String {
    chunk(&"four".repeat(count))
}

async fn charged(actor: &Actor, nanos: u64) {
    until("the charge", async || {
        actor.agent.counters().await.day_nanos == nanos
    })
    .await;
}

/// A hold grows at the boundary, by as many steps as are needed, and is settled to the real cost.
#[tokio::test]
async fn a_hold_grows_when_three_quarters_of_it_were_seen() {
    let fixture = fixture().await;
    let (actor, feed, mut stream) = fixture.open_fed().await;
    feed.send(tokens(766));
    feed.send(chunk("-a-"));
    stream.until("-a-").await;
    assert_eq!(
        actor.agent.counters().await.day_nanos,
        HELD,
        "766 tokens and three bytes are 767 tokens: not yet"
    );
    feed.send(chunk("-b-"));
    stream.until("-b-").await;
    charged(&actor, 2 * HELD).await;
    feed.send(tokens(3000));
    feed.send(chunk("-c-"));
    stream.until("-c-").await;
    // 3,769 of 5,026 held tokens are three quarters.
    charged(&actor, 5 * HELD).await;
    finish(&feed, 4000);
    assert!(stream.rest().await.ends_with("[DONE]\n\n"));
    assert_eq!(actor.settled().await, 4000);
    let counters = actor.agent.counters().await;
    assert_eq!((counters.month_nanos, counters.day_nanos), (4000, 4000));
}

/// A provider can report the usage so far in every chunk, some only if the caller requests it. That does not end the
/// stream, so the hold still grows.
#[tokio::test]
async fn a_hold_grows_beside_usage_in_every_chunk() {
    let fixture = fixture().await;
    let actor = fixture.actor("enterprise", daily(HELD)).await;
    let feed = Feed::new();
    fixture.provider_streams(Script::new().feed(&feed));
    let mut stream = fixture.open(&actor, json!({})).await;
    let with_usage = |text: &str, output: u64| {
        let choice = json!({ "index": 0, "delta": { "content": text } });
        format!(
            "data: {}\n\n",
            json!({ "choices": [choice], "usage": usage(9, output) })
        )
    };
    feed.send(with_usage("-passes-", 2));
    stream.until("-passes-").await;
    feed.send(with_usage(&"four".repeat(1000), 1002) + &with_usage("-too-much-", 1005));
    let body = stream.rest().await;
    assert!(
        body.contains("hold_exhausted") && !body.contains("-too-much-"),
        "{body}"
    );
    assert_eq!(actor.settled().await, HELD, "usage so far settles nothing");
}

/// A refusal by Cap ends the stream in the middle of an answer. Nothing of the refused part passes.
#[tokio::test]
async fn a_cap_holds_in_the_middle_of_a_stream() {
    let fixture = fixture().await;
    let per_run = CapPolicy {
        per_run: Nanos::new(2 * HELD),
        ..open_cap()
    };
    let monthly = CapPolicy {
        monthly: Nanos::new(2 * HELD),
        ..open_cap()
    };
    for cap in [daily(2 * HELD), monthly, per_run] {
        let actor = fixture.actor("enterprise", cap).await;
        let feed = Feed::new();
        fixture.provider_streams(Script::new().feed(&feed));
        let path = "/v1/chat/completions";
        let (key, head) = (&actor.key, "X-Service-Run-Id: run\r\n");
        let mut stream = EventStream::open(
            fixture.edge.addr(),
            path,
            key,
            head,
            crate::fixture::body(json!({})),
        )
        .await;
        feed.send(tokens(1000));
        feed.send(chunk("-passes-"));
        stream.until("-passes-").await;
        charged(&actor, 2 * HELD).await;
        feed.send(tokens(1000) + &chunk("-too-much-"));
        let body = stream.rest().await;
        assert!(
            body.contains("\"code\":\"hold_exhausted\"") && !body.contains("-too-much-"),
            "{body}"
        );
        feed.wait_for_peer_gone(SOON).await;
        assert_eq!(actor.settled().await, 2 * HELD);
        let again = crate::fixture::body(json!({}));
        let next = EventStream::open(fixture.edge.addr(), path, key, head, again).await;
        assert_eq!(next.status(), 402, "the cap is used up");
    }
}

/// The text of a response counts as that of a chat completion does: its hold grows, and is settled to the real cost.
#[tokio::test]
async fn the_hold_of_a_response_grows() {
    let fixture = fixture().await;
    let (actor, feed) = fixture.fed_actor().await;
    let mut stream = fixture.open_response(&actor).await;
    feed.send(response_delta(&"four".repeat(766)));
    feed.send(response_delta("-a-"));
    stream.until("-a-").await;
    assert_eq!(
        actor.agent.counters().await.day_nanos,
        HELD,
        "767 tokens: not yet"
    );
    feed.send(response_delta("-b-"));
    stream.until("-b-").await;
    charged(&actor, 2 * HELD).await;
    finish_response(&feed, 800);
    assert!(stream.rest().await.contains("response.completed"));
    assert_eq!(actor.settled().await, 800);
}

/// A response that Cap refuses to extend ends as one that failed, and nothing of the refused part passes.
#[tokio::test]
async fn a_cap_ends_a_response_in_the_middle() {
    let fixture = fixture().await;
    let actor = fixture.actor("enterprise", daily(2 * HELD)).await;
    let feed = Feed::new();
    fixture.provider_streams(Script::new().feed(&feed));
    let mut stream = fixture.open_response(&actor).await;
    feed.send(response_delta(&"four".repeat(1000)) + &response_delta("-passes-"));
    stream.until("-passes-").await;
    charged(&actor, 2 * HELD).await;
    feed.send(response_delta(&"four".repeat(1000)) + &response_delta("-too-much-"));
    let body = stream.rest().await;
    assert!(!body.contains("-too-much-"), "{body}");
    failed_with(body, "hold_exhausted");
    feed.wait_for_peer_gone(SOON).await;
    assert_eq!(actor.settled().await, 2 * HELD);
}

/// A call with a limit holds all of it from the start. The bytes of its text are no measure of tokens that is good
/// enough to cut it: four times as much passes.
#[tokio::test]
async fn a_call_with_a_limit_does_not_grow() {
    let fixture = fixture().await;
    let actor = fixture.actor("enterprise", daily(100)).await;
    let script = Script::new()
        .send(tokens(399))
        .send(usage_frame(90))
        .event("[DONE]");
    fixture.provider_streams(script);
    let mut stream = fixture
        .open(&actor, json!({ "max_completion_tokens": 100 }))
        .await;
    assert!(stream.rest().await.ends_with("[DONE]\n\n"));
    assert_eq!(actor.settled().await, 90);
}

/// A provider that ignores the limit, or goes by another one of the request, does not get round the cap.
#[tokio::test]
async fn a_limit_that_the_provider_ignores_does_not_hide_the_answer() {
    let fixture = fixture().await;
    for (limits, passing) in [
        (json!({ "max_completion_tokens": 100 }), 399),
        (json!({ "max_completion_tokens": 1, "max_tokens": 128_000 }), 256),
        (json!({ "max_tokens": 50, "n": 2 }), 399),
    ] {
        let actor = fixture.actor("enterprise", daily(200)).await;
        let feed = Feed::new();
        fixture.provider_streams(Script::new().feed(&feed));
        let mut stream = fixture.open(&actor, limits.clone()).await;
        feed.send(tokens(passing - 1) + &chunk("-ok-"));
        stream.until("-ok-").await;
        feed.send(chunk("-no-"));
        let body = stream.rest().await;
        assert!(
            body.contains("hold_exhausted") && !body.contains("-no-"),
            "{limits} {body}"
        );
        feed.wait_for_peer_gone(SOON).await;
        assert_eq!(
            actor.settled().await,
            passing as u64 + 1,
            "what was seen: {limits}"
        );
    }
    // With room it goes on, and grows by steps that are not those of the small limit.
    let actor = fixture.actor("enterprise", daily(10_000)).await;
    let feed = Feed::new();
    fixture.provider_streams(Script::new().feed(&feed));
    let mut stream = fixture.open(&actor, json!({ "max_completion_tokens": 1 })).await;
    feed.send(tokens(256) + &chunk("-on-"));
    stream.until("-on-").await;
    charged(&actor, 1025).await;
    finish(&feed, 300);
    assert!(stream.rest().await.ends_with("[DONE]\n\n"));
    assert_eq!(actor.settled().await, 300);
}

/// Without the switch a stream continues, and its real cost is charged.
#[tokio::test]
async fn without_the_switch_nothing_grows() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", daily(HELD)).await;
    let script = Script::new()
        .send(tokens(5000))
        .send(usage_frame(4000))
        .event("[DONE]");
    fixture.provider_streams(script);
    assert!(
        fixture
            .open(&actor, json!({}))
            .await
            .rest()
            .await
            .ends_with("[DONE]\n\n")
    );
    assert_eq!(actor.settled().await, 4000);
}

/// A store that is away when the hold has to grow: the stream ends, and is settled later.
#[tokio::test]
async fn without_a_decision_the_stream_ends() {
    for is_killed in [false, true] {
        let extending = |options: EdgeOptions| options.env("TOLLGATE_PROXY__STREAM_EXTEND", "true");
        let fixture = Fixture::durable(extending).await;
        let (actor, feed, mut stream) = fixture.open_fed().await;
        let id = stream.header("x-service-allow-id").unwrap().to_owned();
        feed.send(chunk("one"));
        stream.until("one").await;
        fixture.lose_store(is_killed);
        feed.send(tokens(1000) + &chunk("-too-much-"));
        let body = stream.rest().await;
        assert!(
            body.contains("\"code\":\"service_unavailable\"") && !body.contains("-too-much-"),
            "{is_killed}: {body}"
        );
        // 1,003 tokens were seen, so the held amount is the larger. If the script has run, its step is taken back.
        fixture.settles_with_the_store(is_killed, &actor, &id, HELD).await;
    }
}

/// Many streams, and room for fewer of their steps: no fewer grow than there is room for.
#[tokio::test(flavor = "multi_thread")]
async fn as_many_holds_grow_as_there_is_room_for() {
    const STREAMS: u64 = 60;
    const STEPS: u64 = 25;
    let fixture = fixture().await;
    let actor = fixture.actor("enterprise", daily((STREAMS + STEPS) * HELD)).await;
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let script = Script::new()
        .send(chunk("begins"))
        .wait_for(&gate)
        .send(tokens(800))
        .send(usage_frame(810))
        .event("[DONE]");
    fixture.provider_streams(script);
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = fixture.open(&actor, json!({})).await;
        stream.until("begins").await;
        streams.push(stream);
    }
    let opening = crate::fixture::open_gate(&gate);
    let all = streams
        .into_iter()
        .map(|mut stream| tokio::spawn(async move { stream.rest().await.contains("[DONE]") }));
    // The real cost of a stream that ended makes room again, so more may grow in the end, and never less.
    let mut whole = 0;
    for stream in all.collect::<Vec<_>>() {
        whole += u64::from(stream.await.unwrap());
    }
    assert!(whole >= STEPS, "{whole}");
    opening.abort();
    let charged = actor.settled().await;
    assert_eq!(charged, whole * 810 + (STREAMS - whole) * HELD);
    assert!(charged <= (STREAMS + STEPS) * HELD);
}
