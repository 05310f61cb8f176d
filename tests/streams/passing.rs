//! The bytes that reach the caller, and when.

use crate::fixture::{Fixture, HELD, body, chunk, open_cap, usage, usage_frame};
use harness::{Answer, EventStream, Script};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

fn text(script: &Script) -> String {
    String::from_utf8(script.bytes()).unwrap()
}

/// The head comes before any event, with the decision and the estimate.
#[tokio::test]
async fn the_head_comes_at_once_and_each_event_when_it_is_sent() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let (first, second) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = Script::new()
        .wait_for(&first)
        .send(chunk("one"))
        .wait_for(&second)
        .send(chunk("two"))
        .send(usage_frame(12))
        .event("[DONE]");
    fixture.provider_streams(script);
    let mut stream = fixture.open(&actor, json!({})).await;
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.header("x-service-decision"), Some("approved"));
    assert_eq!(stream.header("x-service-estimated-usd"), Some("0.000001024"));
    assert_eq!(stream.header("x-service-actual-usd"), None);
    assert!(stream.header("x-service-allow-id").unwrap().starts_with("allow_"));
    assert!(stream.header("x-service-run-id").is_some());
    assert_eq!(
        stream.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    first.notify_one();
    stream.until("one").await;
    assert!(!stream.body.contains("two"));
    second.notify_one();
    assert!(stream.rest().await.ends_with("data: [DONE]\n\n"));
    assert_eq!(actor.settled().await, 12);
}

/// The request to the provider and the caller's stream, for each setting of usage.
#[tokio::test]
async fn usage_is_requested_and_passes_to_callers_who_requested_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let script = Script::chat(&["a", "b"], &usage(9, 12));
    fixture.provider_streams(script.clone());
    let all = text(&script);
    let without = all
        .split_inclusive("\n\n")
        .filter(|event| !event.contains("prompt_tokens"))
        .collect::<String>();
    for (options, passes) in [
        (Value::Null, false),
        (json!({}), false),
        (json!({ "include_usage": false }), false),
        (json!({ "include_usage": true }), true),
    ] {
        let sent = body(json!({ "stream_options": options }));
        let mut stream =
            EventStream::open(fixture.edge.addr(), "/v1/chat/completions", &actor.key, "", sent).await;
        assert_eq!(
            stream.rest().await,
            if passes { &all } else { &without },
            "{options}"
        );
        let received: Value = fixture.upstream.requests().pop().unwrap().json();
        assert_eq!(received["stream_options"]["include_usage"], true);
    }
    assert_eq!(actor.settled().await, 4 * 12);
}

/// A provider that refuses `stream_options` gets the caller's body unchanged, and the caller gets the whole stream.
#[tokio::test]
async fn a_provider_that_reports_usage_unasked_is_not_asked() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_UPSTREAM__STREAM_USAGE", "unasked")).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let in_last_chunk = Script::new()
        .send(chunk("hello"))
        .event(json!({
            "choices": [{ "index": 0, "delta": { "content": "" }, "finish_reason": "stop" }], "usage": usage(9, 12),
        }))
        .event("[DONE]");
    let mut charged = 0;
    for (script, nanos) in [
        (in_last_chunk, 12),
        (Script::chat(&["a", "b"], &usage(9, 12)), 12),
        (Script::chat(&["a", "b"], &Value::Null), HELD),
    ] {
        fixture.provider_streams(script.clone());
        for more in [json!({}), json!({ "stream_options": { "include_usage": false } })] {
            let sent = body(more);
            let path = "/v1/chat/completions";
            let mut stream = EventStream::open(fixture.edge.addr(), path, &actor.key, "", sent.clone()).await;
            assert_eq!(stream.rest().await, text(&script), "nothing is dropped");
            let received: Value = fixture.upstream.requests().pop().unwrap().json();
            assert_eq!(received, sent, "the body is the caller's");
            charged += nanos;
            assert_eq!(actor.settled().await, charged);
        }
    }
}

/// The larger of the table's cost and of the reported one, with and without a usage of the whole answer.
#[tokio::test]
async fn a_reported_cost_above_the_table_is_charged() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_UPSTREAM__REPORTED_COST", "true")).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let mut charged = 0;
    for (tokens, cost, nanos) in [
        (12, json!(0.000_003), 3_000),
        (12, json!("1e-9"), 12),
        (12, json!(-1), 12),
        (0, json!(0.000_003), 3_000),
    ] {
        let mut usage = match tokens {
            0 => json!({}),
            tokens => usage(9, tokens),
        };
        usage["cost"] = cost.clone();
        fixture.provider_streams(Script::chat(&["a", "b"], &usage));
        let mut stream = fixture.open(&actor, json!({})).await;
        stream.rest().await;
        charged += nanos;
        assert_eq!(actor.settled().await, charged, "{tokens} {cost}");
    }
}

/// Parsers differ in which value of a repeated key they take. A whole answer and a stream are read alike.
#[tokio::test]
async fn an_ambiguous_or_long_usage_costs_the_same_whole_and_streamed() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_UPSTREAM__REPORTED_COST", "true")).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let tokens = r#""prompt_tokens":9,"completion_tokens":12"#;
    let padded = |bytes: usize| format!(r#""usage":{{{tokens},"cost":3e-6,"x":"{}"}}"#, "x".repeat(bytes));
    let mut charged = 0;
    for (fields, nanos) in [
        (format!(r#""usage":{{{tokens}}}"#), 12),
        (format!(r#""us\u0061ge":{{{tokens}}}"#), 12),
        (format!(r#""usage":{{{tokens}}},"usage":{{{tokens}}}"#), HELD),
        (format!(r#""usage":null,"usage":{{{tokens}}}"#), HELD),
        (
            format!(r#""service_tier":"flex","usage":{{{tokens}}},"service_tier":"priority""#),
            HELD,
        ),
        (format!(r#""usage":{{{tokens},"cost":3e-6,"cost":1e-6}}"#), 3_000),
        (format!(r#""usage":{{{tokens},"cost":1e-6,"cost":3e-6}}"#), 3_000),
        (padded(20_000), 3_000),
        (padded(64 << 10), HELD),
    ] {
        let shown = &fields[..fields.len().min(200)];
        let whole = format!(r#"{{"choices":[],{fields}}}"#);
        let script = Script::new().send(chunk("a")).send(format!("data: {whole}\n\n"));
        fixture.provider_streams(script.send("data: [DONE]\n\n"));
        fixture.open(&actor, json!({})).await.rest().await;
        charged += nanos;
        assert_eq!(actor.settled().await, charged, "streamed {shown}");
        let answer = Answer::bytes(200, whole);
        fixture.upstream.set(move |_| answer.clone());
        let mut asked = body(json!({}));
        asked["stream"] = Value::Bool(false);
        let caller = fixture.edge.caller(&actor.key);
        assert_eq!(caller.chat(asked).await.status, 200);
        charged += nanos;
        assert_eq!(actor.settled().await, charged, "whole {shown}");
    }
}

/// Tokens and cost may be in different frames; neither takes the place of the other.
#[tokio::test]
async fn a_cost_in_a_frame_of_its_own_counts_beside_the_tokens() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_UPSTREAM__REPORTED_COST", "true")).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let cost = |usd: f64| format!("data: {}\n\n", json!({ "choices": [], "usage": { "cost": usd } }));
    let mut charged = 0;
    for (frames, nanos) in [
        ([usage_frame(5_000), cost(0.000_000_003)], 5_000),
        ([usage_frame(12), cost(0.000_003)], 3_000),
        ([cost(0.000_003), usage_frame(12)], 3_000),
    ] {
        let script = Script::new().send(chunk("a")).send(frames.concat());
        fixture.provider_streams(script.send("data: [DONE]\n\n"));
        let mut stream = fixture.open(&actor, json!({})).await;
        stream.rest().await;
        charged += nanos;
        assert_eq!(actor.settled().await, charged, "{frames:?}");
    }
}

/// Borders of chunks fall anywhere: inside of characters, line ends, names of fields.
#[tokio::test]
async fn borders_of_pieces_change_nothing() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    for line_end in ["\n", "\r\n", "\r"] {
        let script = Script::new()
            .send(": a comment\n\nevent: x\nid: 7\n\n".replace('\n', line_end))
            .send(chunk("h\u{e9}llo \u{1f600}").replace('\n', line_end))
            .send(usage_frame(12).replace('\n', line_end))
            .send("data: [DONE]\n\n".replace('\n', line_end));
        for size in [1, 3, 7, 1000] {
            fixture.provider_streams(script.clone().cut_anew(size));
            let mut stream = fixture
                .open(&actor, json!({ "stream_options": { "include_usage": true } }))
                .await;
            assert_eq!(stream.rest().await, text(&script), "{line_end:?} {size}");
        }
    }
    assert_eq!(actor.settled().await, 3 * 4 * 12);
}

/// An event of a megabyte passes as it comes, and its usage is read all the same.
#[tokio::test]
async fn long_events_pass() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let script = Script::new()
        .send(chunk(&"x".repeat(1 << 20)))
        .send(usage_frame(12))
        .event("[DONE]");
    fixture.provider_streams(script.clone());
    let mut stream = fixture.open(&actor, json!({ "max_tokens": 5 })).await;
    assert_eq!(
        stream.rest().await.len(),
        script.bytes().len() - usage_frame(12).len()
    );
    assert_eq!(actor.settled().await, 12);
}

/// The caller's next call sees the settlement: `[DONE]` waits for it.
#[tokio::test]
async fn the_call_is_settled_before_the_last_event() {
    let fixture = Fixture::new().await;
    let actor = fixture
        .actor("enterprise", crate::fixture::daily(1024 + 12))
        .await;
    for round in 0..2 {
        let mut stream = fixture.open(&actor, json!({})).await;
        assert_eq!(stream.status(), 200, "{round}");
        stream.until("[DONE]").await;
        assert_eq!(actor.agent.counters().await.day_nanos, 12 * (round + 1));
    }
    assert_eq!(fixture.open(&actor, json!({})).await.status(), 402);
}

#[tokio::test]
async fn the_cost_comes_at_the_end_on_request() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let path = "/v1/chat/completions";
    let cost_header = "X-Service-Stream-Cost: true\r\n";
    let mut stream = EventStream::open(
        fixture.edge.addr(),
        path,
        &actor.key,
        cost_header,
        body(json!({})),
    )
    .await;
    let end = "data: [DONE]\n\n: x-service-actual-usd: 0.000000012\n\n";
    assert!(stream.rest().await.ends_with(end), "{}", stream.body);
    let received = fixture.upstream.requests().pop().unwrap();
    assert_eq!(received.header("x-service-stream-cost"), None);
    // The estimate is no actual cost.
    fixture.provider_streams(Script::new().send(chunk("a")).event("[DONE]"));
    let mut stream = EventStream::open(
        fixture.edge.addr(),
        path,
        &actor.key,
        cost_header,
        body(json!({})),
    )
    .await;
    assert!(
        !stream.rest().await.contains("x-service-actual-usd"),
        "{}",
        stream.body
    );
}

/// Keys are redacted in everything that is no part of an answer, wherever borders fall; answers are not searched.
#[tokio::test]
async fn keys_in_errors_are_redacted() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let speaks = chunk("my key is sk-abc123");
    let error = json!({ "message": "Incorrect API key provided: sk-secret123" });
    let long = "x".repeat(20_000);
    let errors = [
        format!("data: {}\n\n", json!({ "error": error })),
        format!("data: {}", json!({ "error": error })),
        format!("data: {{\"choices\":[{{\"delta\":{{}}}}],\"error\":{error}}}\n\n"),
        format!("data: {{\"choices\":[],\"x\":\"{long}\",\"error\":{error}}}\n\n"),
        format!("data: {}\n\n", json!({ "detail": error })),
        format!("data: {}\n\n", error["message"]),
        format!("data: {{\"choices\":[{{\"delta\":{{}},\"error\":{error}}}]}}\n\n"),
    ];
    for error in &errors {
        for size in [1, 10, 1000] {
            let script = Script::new().send(speaks.clone()).send(error.clone());
            fixture.provider_streams(script.cut_anew(size));
            let mut stream = fixture.open(&actor, json!({})).await;
            let body = stream.rest().await;
            assert!(body.starts_with(&speaks) && body.contains("[redacted]"), "{body}");
            assert!(!body.contains("secret123"), "{body}");
        }
        // An error after the last event, when the call is settled.
        let ended = Script::new().send(usage_frame(12)).event("[DONE]");
        let script = ended.pause(Duration::from_millis(50)).send(usage_frame(12));
        fixture.provider_streams(script.send(error.clone()));
        let mut stream = fixture.open(&actor, json!({})).await;
        let body = stream.rest().await;
        assert!(
            body.starts_with("data: [DONE]\n\n") && body.contains("[redacted]"),
            "{body}"
        );
        assert!(
            !body.contains("secret123") && !body.contains("prompt_tokens"),
            "{body}"
        );
    }
}

/// Providers that answer with 200 and an error (OpenRouter), and responses that failed.
#[tokio::test]
async fn keys_in_errors_with_status_200_are_redacted() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    for (endpoint, answer) in [
        (
            "/v1/chat/completions",
            json!({ "error": { "message": "bad sk-secret123 sk-test-provider-key" } }),
        ),
        (
            "/v1/responses",
            json!({ "status": "failed", "error": { "message": "bad sk-secret123 sk-test-provider-key" } }),
        ),
    ] {
        fixture.upstream.set(move |_| Answer::json(200, answer.clone()));
        let sent = json!({ "model": "nano", "input": "a", "messages": [{ "role": "user", "content": "a" }] });
        let reply = fixture.edge.caller(&actor.key).post(endpoint, sent).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(
            reply.json()["error"]["message"],
            "bad [redacted] [redacted]",
            "{endpoint}"
        );
    }
}

/// A provider that answers a streamed request with something else: whole, as without a stream.
#[tokio::test]
async fn answers_that_are_no_stream_pass_whole() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    fixture.upstream.set(|_| Answer::chat(9, 12));
    let mut stream = fixture.open(&actor, json!({})).await;
    assert_eq!(stream.header("x-service-actual-usd"), Some("0.000000012"));
    assert_eq!(stream.whole().await["usage"], usage(9, 12));
    let error =
        |key: &str| format!("event: error\ndata: {{\"error\":{{\"message\":\"bad key {key}\"}}}}\n\n");
    for (status, charged, repeats) in [
        (429, 12, None),
        (500, 12 + HELD, Some("false")),
        (503, 12 + 2 * HELD, Some("false")),
    ] {
        // The usage in it is not that of a whole answer.
        let body = error("sk-secret123") + &usage_frame(5);
        let answer = Answer::bytes(status, body).header("content-type", "text/event-stream");
        fixture.upstream.set(move |_| answer.clone());
        let mut stream = fixture.open(&actor, json!({})).await;
        assert_eq!(stream.status(), status);
        assert_eq!(
            stream.header("content-type"),
            Some("text/event-stream"),
            "{status}"
        );
        assert_eq!(stream.header("x-should-retry"), repeats, "{status}");
        assert_eq!(stream.header("x-service-actual-usd"), None, "{status}");
        assert_eq!(stream.whole_text().await, error("[redacted]") + &usage_frame(5));
        assert_eq!(
            actor.settled().await,
            charged,
            "{status}: a refusal costs nothing, a failure the estimate"
        );
    }
}

/// Tollgate requests no compression. A stream that is compressed anyway is decoded, or it could not be settled.
#[tokio::test]
async fn a_compressed_stream_is_decoded() {
    use std::io::Write as _;
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let script = Script::chat(&["a", "b"], &usage(9, 12));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&script.bytes()).unwrap();
    let compressed = Script::new().in_pieces(7, gzip.finish().unwrap());
    let answer = Answer::stream(compressed).header("content-encoding", "gzip");
    fixture.upstream.set(move |_| answer.clone());
    let mut stream = fixture
        .open(&actor, json!({ "stream_options": { "include_usage": true } }))
        .await;
    assert_eq!(stream.header("content-encoding"), None);
    assert_eq!(stream.rest().await, text(&script));
    assert_eq!(actor.settled().await, 12);
}
