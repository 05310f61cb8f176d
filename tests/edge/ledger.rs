//! The charge that stays after an approved call (specification "Proxy spend ledger", decisions D33 to D36, D46, D51,
//! D64).

use super::fixture::{Fixture, amounts, estimated_body, open_cap};
use super::shape::{approved, refused};
use harness::{Answer, Redis, Reply};
use serde_json::Value;
use std::sync::Arc;

const ESTIMATE: u64 = 100;
/// The cost of the usage 9 + 12.
const ACTUAL: u64 = 12;

/// One call of a new agent, whose whole charge must then be `charged`.
async fn one_call(fixture: &Fixture, what: &str, answer: &Answer, charged: u64) -> Reply {
    let actor = fixture.actor("enterprise", open_cap()).await;
    let (before, answer) = (fixture.upstream.arrived(), answer.clone());
    fixture.upstream.set(move |_| answer.clone());
    let reply = actor
        .caller
        .chat_with(&[("x-service-run-id", "r")], estimated_body(ESTIMATE))
        .await;
    let allow_id = approved(&reply);
    assert!(allow_id.starts_with("allow_"), "{what}");
    assert_eq!(amounts(&reply).0, ESTIMATE, "{what}");
    let counters = actor.agent.counters().await;
    assert_eq!(
        [counters.day_nanos, counters.month_nanos, counters.tracked_nanos],
        [charged; 3],
        "{what}: {reply:?}"
    );
    assert_eq!(actor.agent.run_spent("r").await, Some(charged), "{what}");
    assert_eq!(actor.agent.open_holds().await, 0, "{what}: nothing is left open");
    assert_eq!(
        fixture.upstream.arrived(),
        before + 1,
        "{what}: exactly one upstream request"
    );
    reply
}

#[tokio::test]
async fn the_provider_s_status_decides_what_stays_charged() {
    let fixture = Fixture::alone().await;
    let chat = |status: u16| {
        let usage = serde_json::json!({ "usage": { "prompt_tokens": 9, "completion_tokens": 12 } });
        Answer::json(status, usage)
    };
    for status in [200, 201, 202, 299] {
        let reply = one_call(&fixture, "a success with usage", &chat(status), ACTUAL).await;
        assert_eq!(
            (reply.status, amounts(&reply).1, reply.header("x-should-retry")),
            (status, Some(ACTUAL), None)
        );
    }
    let reply = one_call(
        &fixture,
        "a success without",
        &Answer::chat_with_usage(Value::Null),
        ESTIMATE,
    )
    .await;
    assert_eq!(
        (reply.status, amounts(&reply).1, reply.header("x-should-retry")),
        (200, None, None)
    );
    for status in [204, 205] {
        let reply = one_call(&fixture, "no usage", &Answer::bytes(status, ""), ESTIMATE).await;
        assert_eq!((reply.status, reply.body.len()), (status, 0));
    }
    // An error with usage in it is still an error.
    for status in [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 451, 499] {
        let reply = one_call(&fixture, "a refusal is released", &chat(status), 0).await;
        assert_eq!(
            (reply.status, amounts(&reply).1, reply.header("x-should-retry")),
            (status, None, None)
        );
        assert_eq!(reply.json()["usage"]["prompt_tokens"], 9, "the body is passed on");
    }
    for status in [
        300, 301, 302, 303, 307, 308, 304, 500, 501, 502, 503, 504, 529, 599,
    ] {
        let answer = chat(status).header(
            "Location",
            &format!("http://{}/elsewhere", fixture.upstream.addr()),
        );
        let reply = one_call(&fixture, "a failure stays charged", &answer, ESTIMATE).await;
        assert_eq!(
            (reply.status, amounts(&reply).1, reply.header("x-should-retry")),
            (status, None, Some("false"))
        );
    }
    for (status, kept) in [(429, Some("true")), (500, Some("false"))] {
        let answer = chat(status).header("x-should-retry", "true");
        let reply = one_call(
            &fixture,
            "the provider asks for a retry",
            &answer,
            if status < 500 { 0 } else { ESTIMATE },
        )
        .await;
        assert_eq!(
            reply.header("x-should-retry"),
            kept,
            "only a kept charge overrules the provider"
        );
    }
}

/// Answers are held in memory, so they are bounded; a longer one counts as broken off.
#[tokio::test]
async fn an_answer_beyond_the_limit_is_a_502_and_stays_charged() {
    let redis = Arc::new(Redis::start());
    let fixture = Fixture::on(redis, |options| {
        options.env("TOLLGATE_UPSTREAM__MAX_RESPONSE_BYTES", "20000")
    })
    .await;
    let body = |length: usize| vec![b'x'; length];
    for answer in [
        Answer::bytes(200, body(20_000)),
        Answer::bytes(200, body(20_000)).chunked(999),
    ] {
        assert_eq!(
            one_call(&fixture, "the limit itself", &answer, ESTIMATE)
                .await
                .body
                .len(),
            20_000
        );
    }
    for answer in [
        Answer::bytes(200, body(20_001)),
        Answer::bytes(400, body(200_000)).chunked(999),
    ] {
        let reply = one_call(&fixture, "one byte more", &answer, ESTIMATE).await;
        refused(&reply, 502, "upstream_unreachable");
    }
}
