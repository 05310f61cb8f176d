//! A streamed call: its row in `GET /calls`, its decision, and the filters by what was measured.

use super::calls;
use crate::fixture::text;
use crate::record_fixture::{MODEL, RecordFixture};
use harness::{Answer, Script, assert_fields, chat_body};
use serde_json::{Value, json};
use std::time::Duration;

/// The provider's time from the head of its answer to the first byte of the body.
const PAUSE: Duration = Duration::from_millis(200);

/// A stream whose text is 800 tokens, more than three quarters of what is held.
fn script() -> Script {
    let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": "four".repeat(800) } }] });
    Script::new().pause(PAUSE).event(chunk)
}

#[tokio::test]
async fn a_streamed_call_is_shown_with_what_was_measured() {
    let switches = [("PROXY__STREAMING", "true"), ("PROXY__STREAM_EXTEND", "true")];
    let fixture = RecordFixture::start_with(&switches).await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    let (_, plain) = client.call(None).await;
    let usage = json!({ "prompt_tokens": 9, "prompt_tokens_details": { "cached_tokens": 4 },
        "completion_tokens": 850, "total_tokens": 859 });
    let reported = script()
        .event(json!({ "choices": [], "usage": usage }))
        .event("[DONE]");
    // The prompt's 900 nano-USD and 2 × 1,024 tokens of 600.
    let (held, real) = ("1229700", "511050");
    let mut ids = vec![plain];
    for (script, outcome, end, cost, actual, tokens) in [
        (
            reported,
            "settled",
            "completed",
            real,
            json!(real),
            [json!(9), json!(4), json!(850)],
        ),
        (
            script().break_off(),
            "estimated",
            "provider_broke_off",
            held,
            Value::Null,
            [Value::Null, Value::Null, Value::Null],
        ),
    ] {
        let answer = Answer::stream(script);
        fixture.upstream.set(move |_| answer.clone());
        let mut body = chat_body(MODEL, "hello");
        body["stream"] = json!(true);
        let reply = client.edge.chat(body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let id = reply.header("x-service-allow-id").unwrap().to_owned();
        // At once: the stream does not end before its call is settled.
        let decision = client.decision(&id).await;
        assert_fields!(decision, { "outcome": outcome, "estimateNanos": held, "chargedNanos": cost,
            "actualNanos": actual, "approved": true });
        let call = &decision["call"];
        let [input, cached, output] = tokens;
        assert_fields!(call, { "stream": true, "end": end, "extensions": 1, "endpoint": "chat.completions",
            "inputTokens": input, "cachedTokens": cached, "outputTokens": output });
        let [first_byte, latency] = ["firstByteMs", "latencyMs"].map(|name| call[name].as_u64().unwrap());
        assert!(
            (PAUSE.as_millis() as u64..=latency).contains(&first_byte),
            "{call}"
        );
        let row = &calls(&client.api, "").await[0];
        assert_fields!(row, { "id": id, "outcome": outcome, "costNanos": cost, "costUsd": decision["chargedUsd"],
            "estimatedNanos": held, "endedAt": decision["endedAt"], "auditSeq": decision["auditSeq"] });
        for (name, value) in call
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| *name != "billing")
        {
            assert_eq!(row[name], *value, "{name}");
        }
        ids.push(id);
    }

    let rows = calls(&client.api, "").await;
    for (filter, field, of) in [
        ("minFirstByteMs", "firstByteMs", 1),
        ("minLatencyMs", "latencyMs", 2),
        ("minCachedTokens", "cachedTokens", 1),
    ] {
        let row = rows.iter().find(|row| text(row, "/id") == ids[of]);
        let value = row.unwrap()[field].as_u64().unwrap();
        for (least, is_found) in [(value, true), (value + 1, false)] {
            let expected = rows.iter().filter(|row| row[field].as_u64() >= Some(least));
            let found = calls(&client.api, &format!("?{filter}={least}")).await;
            assert_eq!(found, expected.cloned().collect::<Vec<_>>(), "{filter}={least}");
            let listed = found.iter().any(|row| text(row, "/id") == ids[of]);
            assert_eq!(listed, is_found, "{filter}={least}");
        }
    }
    let cached = calls(&client.api, "?minCachedTokens=1").await;
    assert_eq!(
        cached.len(),
        1,
        "the plain call has none, the broken one an unknown number"
    );
}
