//! The charge for each end of a stream. With usage it is the real cost, without usage the larger of the held amount
//! and the cost of the text that was seen: a token of `nano` for four bytes.

use crate::fixture::{Fixture, HELD, SOON, chunk, finish, open_cap, usage, usage_frame};
use harness::{Script, eventually};
use serde_json::{Value, json};
use std::time::Duration;

/// The events of a script, as the edge reads them, and their cost.
struct Case {
    what: &'static str,
    script: Script,
    cost: u64,
    /// The code of the error event.
    error: Option<&'static str>,
    end: &'static str,
}

/// The case that waits for a deadline.
const SILENT: &str = "silent";

/// An event with a whole message in place of a delta.
fn whole(message: Value) -> Value {
    json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })
}

fn cases() -> Vec<Case> {
    let script = Script::new().send(chunk("four"));
    let long = chunk(&"x".repeat(4 * 2000));
    let ended = |what, script, cost| Case {
        what,
        script,
        cost,
        error: None,
        end: "completed",
    };
    let absurd = json!({ "choices": [], "usage": usage(9, 2_000_000_000) });
    let broken = |what, script, cost| Case {
        what,
        script,
        cost,
        error: Some("upstream_unreachable"),
        end: "provider_broke_off",
    };
    vec![
        ended("usage", script.clone().send(usage_frame(12)).event("[DONE]"), 12),
        ended(
            "usage behind [DONE]",
            script.clone().event("[DONE]").send(usage_frame(12)),
            12,
        ),
        ended("usage without [DONE]", script.clone().send(usage_frame(12)), 12),
        ended(
            "usage twice: the last one counts",
            script
                .clone()
                .send(usage_frame(5))
                .send(usage_frame(12))
                .event("[DONE]"),
            12,
        ),
        ended(
            "usage in a chunk with a choice",
            script
                .clone()
                .event(json!({ "choices": [{ "delta": {} }], "usage": usage(9, 12) }))
                .event("[DONE]"),
            12,
        ),
        ended("no usage: what is held", script.clone().event("[DONE]"), HELD),
        ended(
            "no usage and much text: what was seen",
            Script::new().send(long.clone()).event("[DONE]"),
            2000,
        ),
        ended(
            "no usage and much text in whole messages: what was seen",
            Script::new()
                .event(whole(json!({ "content": "x".repeat(8000) })))
                .event("[DONE]"),
            2000,
        ),
        ended(
            "no usage, and messages that repeat the deltas: each text once",
            (0..10).fold(Script::new(), |script, _| {
                script
                    .send(chunk("four"))
                    .event(whole(json!({ "content": "x".repeat(8000) })))
            }),
            HELD,
        ),
        ended(
            "absurd usage is ignored",
            script.clone().event(absurd).event("[DONE]"),
            HELD,
        ),
        ended(
            "invalid usage behind a valid one",
            script
                .clone()
                .send(usage_frame(12))
                .event(json!({ "choices": [], "usage": {} }))
                .event(json!({ "choices": [], "usage": usage(9, 2_000_000_000) }))
                .event("[DONE]"),
            12,
        ),
        ended(
            "a reason to finish, without usage or [DONE]",
            script
                .clone()
                .event(json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] })),
            HELD,
        ),
        ended(
            "usage before the text is not of the answer",
            Script::new()
                .send(usage_frame(1))
                .send(chunk("four"))
                .event("[DONE]"),
            HELD,
        ),
        broken(
            "a body that ends in a text behind usage",
            Script::new().send(usage_frame(1)).send(long.clone()),
            2000,
        ),
        broken(
            "broken off in a text behind usage",
            Script::new().send(usage_frame(1)).send(chunk("four")).break_off(),
            HELD,
        ),
        broken(
            "an empty reason to finish in each chunk",
            script
                .clone()
                .event(json!({ "choices": [{ "delta": { "content": "four" }, "finish_reason": "" }] })),
            HELD,
        ),
        broken("nothing at all", Script::new(), HELD),
        broken("a body that ends with a text", script.clone(), HELD),
        broken(
            "a body that ends behind usage so far",
            script
                .clone()
                .event(json!({ "choices": [{ "delta": {} }], "usage": usage(9, 12) })),
            HELD,
        ),
        broken(
            "an event that breaks off",
            script.clone().send("data: {\"choices\":[{\"delta\":{\"con"),
            HELD,
        ),
        broken("broken off", script.clone().break_off(), HELD),
        broken("reset", script.clone().reset(), HELD),
        broken(
            "broken off behind much text",
            Script::new().send(long).break_off(),
            2000,
        ),
        broken(
            "broken off behind the usage",
            script.clone().send(usage_frame(12)).break_off(),
            12,
        ),
        broken(
            "broken off behind usage so far",
            script
                .clone()
                .event(json!({ "choices": [{ "delta": {} }], "usage": usage(9, 12) }))
                .break_off(),
            HELD,
        ),
        Case {
            what: SILENT,
            script: script.hang(),
            cost: HELD,
            error: Some("upstream_timeout"),
            end: "idle_timeout",
        },
    ]
}

#[tokio::test]
async fn each_end_is_charged_by_the_rule() {
    let fixture = Fixture::new().await;
    let impatient = Fixture::with(|options| options.env("TOLLGATE_PROXY__STREAM_IDLE_MS", "1000")).await;
    for case in cases() {
        let fixture = if case.what == SILENT { &impatient } else { &fixture };
        let actor = fixture.actor("enterprise", open_cap()).await;
        fixture.provider_streams(case.script);
        let mut stream = fixture.open(&actor, json!({})).await;
        assert_eq!(stream.status(), 200, "{}", case.what);
        let id = stream.header("x-service-allow-id").unwrap().to_owned();
        let body = stream.rest().await.to_owned();
        assert_eq!(actor.settled().await, case.cost, "{}", case.what);
        let errors: Vec<Value> = body
            .split("\n\n")
            .filter_map(|event| event.strip_prefix("event: error\ndata: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        let codes: Vec<_> = errors
            .iter()
            .map(|error| error["error"]["code"].as_str())
            .collect();
        assert_eq!(
            codes,
            case.error.map(Some).into_iter().collect::<Vec<_>>(),
            "{}: {body}",
            case.what
        );
        let charged = if case.cost < HELD {
            "reported"
        } else {
            "at least what was held"
        };
        for error in &errors {
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.contains(charged), "{}: {message}", case.what);
        }
        let line = eventually("the audit line", SOON, async || {
            fixture.audit_lines(&actor.agent, &id).pop()
        })
        .await;
        assert!(line.contains(&format!(",{},", case.end)), "{}: {line}", case.what);
        let line = eventually("the log line", SOON, async || log_line(fixture, &id)).await;
        assert_eq!(line["stream.end"], case.end, "{}: {line}", case.what);
        assert_eq!(line["upstream.name"], "openai", "{}: {line}", case.what);
    }
}

fn log_line(fixture: &Fixture, allow_id: &str) -> Option<Value> {
    log_line_of(fixture, "call settled", allow_id)
}

fn log_line_of(fixture: &Fixture, message: &str, allow_id: &str) -> Option<Value> {
    let logs = fixture.edge.logs();
    let mut lines = logs
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.find(|line| line["message"] == message && line["decision.id"] == allow_id)
}

/// `usage_tokens_max` of the upstream. A usage with more is as one that no call has, and is logged and counted.
#[tokio::test]
async fn a_usage_beyond_the_bound_of_the_upstream_is_none() {
    const TOKENS_MAX: u64 = 3_000;
    let fixture =
        Fixture::with(|options| options.env("TOLLGATE_UPSTREAM__USAGE_TOKENS_MAX", TOKENS_MAX.to_string()))
            .await;
    let script = Script::new().send(chunk("four"));
    for (what, frames, cost, ignored) in [
        ("at the bound", vec![TOKENS_MAX], TOKENS_MAX, 0),
        ("beyond it", vec![TOKENS_MAX + 1], HELD, 1),
        (
            "beyond it, then at it",
            vec![TOKENS_MAX + 1, TOKENS_MAX],
            TOKENS_MAX,
            0,
        ),
        (
            "at it, then beyond it",
            vec![TOKENS_MAX, TOKENS_MAX + 1],
            TOKENS_MAX,
            1,
        ),
    ] {
        let before = fixture
            .metric("tollgate_proxy_upstream_ignored_usages_total")
            .await;
        let actor = fixture.actor("enterprise", open_cap()).await;
        let frames = frames.into_iter();
        let script = frames.fold(script.clone(), |script, tokens| script.send(usage_frame(tokens)));
        fixture.provider_streams(script.event("[DONE]"));
        let mut stream = fixture.open(&actor, json!({})).await;
        let id = stream.header("x-service-allow-id").unwrap().to_owned();
        assert!(stream.rest().await.ends_with("data: [DONE]\n\n"), "{what}");
        assert_eq!(actor.settled().await, cost, "{what}");
        let after = fixture
            .metric("tollgate_proxy_upstream_ignored_usages_total")
            .await;
        assert_eq!(after - before, ignored, "{what}");
        if ignored > 0 {
            let line = eventually("the log line", SOON, async || {
                log_line_of(&fixture, "a reported usage is ignored", &id)
            })
            .await;
            assert_eq!(line["level"], "WARN", "{line}");
            let error = "it has 3001 tokens, more than usage_tokens_max of the upstream";
            assert_eq!(
                (&line["upstream"], &line["error"]),
                (&json!("openai"), &json!(error))
            );
        }
    }
}

/// A stream without usage is charged by its text, and no text counts beyond the bound; there the stream ends.
#[tokio::test]
async fn text_beyond_the_bound_of_the_upstream_ends_its_stream() {
    const TOKENS_MAX: u64 = 3_000;
    let fixture =
        Fixture::with(|options| options.env("TOLLGATE_UPSTREAM__USAGE_TOKENS_MAX", TOKENS_MAX.to_string()))
            .await;
    let piece = "x".repeat(4_000);
    let pieces = |count: usize| (0..count).fold(Script::new(), |script, _| script.send(chunk(&piece)));
    for (script, is_within) in [
        (pieces(3).event("[DONE]"), true),
        (pieces(3).send(chunk("x")).pause(SOON).send(chunk("-no-")), false),
        (pieces(100).pause(SOON), false),
    ] {
        let actor = fixture.actor("enterprise", open_cap()).await;
        fixture.provider_streams(script);
        let mut stream = fixture.open(&actor, json!({})).await;
        let rest = stream.rest().await;
        assert_eq!(rest.contains("upstream_unreachable"), !is_within, "{rest}");
        assert!(!rest.contains("-no-"));
        assert_eq!(actor.settled().await, TOKENS_MAX);
    }
}

/// The deadline of the whole stream, and that of the first byte, which ends a call before it is a stream.
#[tokio::test]
async fn a_stream_has_a_deadline_as_a_whole() {
    let fixture = Fixture::with(|options| {
        options
            .env("TOLLGATE_PROXY__STREAM_TOTAL_MS", "4000")
            .env("TOLLGATE_PROXY__STREAM_FIRST_BYTE_MS", "3000")
    })
    .await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let dripping = (0..100).fold(Script::new(), |script, _| {
        script.send(": ping\n\n").pause(Duration::from_millis(100))
    });
    fixture.provider_streams(dripping);
    let mut stream = fixture.open(&actor, json!({})).await;
    assert!(stream.rest().await.contains("upstream_timeout"));
    assert_eq!(actor.settled().await, HELD);
    fixture.upstream.set(|_| harness::Answer::hang());
    let stream = fixture.open(&actor, json!({})).await;
    assert_eq!(stream.status(), 504);
    assert_eq!(actor.settled().await, 2 * HELD);
}

/// A store that is away when the usage comes: the stream ends all the same, and the settlement follows.
#[tokio::test]
async fn the_settlement_of_a_stream_waits_for_the_store() {
    for is_killed in [false, true] {
        let fixture = Fixture::durable(|options| options).await;
        let (actor, feed, mut stream) = fixture.open_fed().await;
        let id = stream.header("x-service-allow-id").unwrap().to_owned();
        feed.send(chunk("one"));
        stream.until("one").await;
        fixture.lose_store(is_killed);
        finish(&feed, 12);
        assert!(
            stream.rest().await.ends_with("data: [DONE]\n\n"),
            "{is_killed}: {}",
            stream.body
        );
        fixture.settles_with_the_store(is_killed, &actor, &id, 12).await;
    }
}

/// The time to the first byte of the body, once for each stream; none for a stream without a byte, and for an answer
/// that is no stream.
#[tokio::test]
async fn the_time_to_the_first_byte_is_recorded() {
    const PAUSE: Duration = Duration::from_millis(200);
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let recorded = async || {
        let value = async |name: &str| -> f64 {
            let series = format!("tollgate_proxy_stream_first_byte_seconds_{name}");
            eventually("the metric", SOON, async || fixture.edge.metric(&series)).await
        };
        (value("count").await, value("sum").await)
    };
    let line_of = async |id: String| {
        eventually("the audit line", SOON, async || {
            fixture.audit_lines(&actor.agent, &id).pop()
        })
        .await
    };
    fixture.upstream.set(|_| harness::Answer::chat(9, 12));
    fixture.open(&actor, json!({})).await.whole().await;
    fixture.provider_streams(Script::new());
    let mut stream = fixture.open(&actor, json!({})).await;
    let id = stream.header("x-service-allow-id").unwrap().to_owned();
    stream.rest().await;
    assert_eq!(recorded().await, (0.0, 0.0));
    assert_eq!(line_of(id).await.matches(",,provider_broke_off,").count(), 1);
    let mut last_sum = 0.0;
    for count in 1..=2 {
        let feed = harness::Feed::new();
        fixture.provider_streams(Script::new().feed(&feed));
        let mut stream = fixture.open(&actor, json!({})).await;
        let id = stream.header("x-service-allow-id").unwrap().to_owned();
        // The head does not count as the first byte.
        tokio::time::sleep(PAUSE).await;
        feed.send(chunk("one"));
        stream.until("one").await;
        let (counted, sum) = recorded().await;
        assert_eq!(counted, f64::from(count));
        assert!(sum - last_sum >= PAUSE.as_secs_f64(), "{last_sum} {sum}");
        finish(&feed, 12);
        stream.rest().await;
        assert_eq!(recorded().await, (counted, sum));
        last_sum = sum;
        // `…,<output tokens>,<latency>,<first byte>,completed,…`
        let line = line_of(id).await;
        let (before, _) = line.split_once(",completed,").unwrap();
        let first_byte = before.rsplit(',').next().unwrap();
        let first_byte: u128 = first_byte.parse().unwrap();
        assert!(first_byte >= PAUSE.as_millis(), "{line}");
    }
}

/// The connection of a stream that was read to its end is used again, and that of another one is not.
#[tokio::test]
async fn connections_are_used_again_behind_a_whole_stream() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    for _ in 0..3 {
        fixture.open(&actor, json!({})).await.rest().await;
    }
    assert_eq!(fixture.upstream.connections(), 1);
}
