//! Answers of the provider that are unusual, and pass all the same: status, bytes and headers are the provider's
//! (decisions D33, D35, D64).

use crate::provider::{each, passed};
use crate::stage::{ACTUAL, ESTIMATE, SOON, Setup, answer, body};
use harness::Answer;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn other_answers_pass_as_they_are() {
    let stage = Setup::default().start().await;
    let usage = |usage| Answer::chat_with_usage(usage);
    each(
        &stage,
        vec![
            (
                "early hints first",
                answer().interim(103).interim(100),
                passed(200, ACTUAL),
            ),
            ("in chunks", answer().chunked(7), passed(200, ACTUAL)),
            ("until the close", answer().until_close(), passed(200, ACTUAL)),
            (
                "slowly",
                answer().trickle(40, Duration::from_millis(5)),
                passed(200, ACTUAL),
            ),
            ("gzip nobody asked for", answer().gzip(), passed(200, ACTUAL)),
            ("gzip in chunks", answer().gzip().chunked(11), passed(200, ACTUAL)),
            (
                "gzip that is none",
                answer().header("Content-Encoding", "gzip"),
                passed(200, ESTIMATE),
            ),
            (
                "an encoding nobody knows",
                answer().header("Content-Encoding", "zz"),
                passed(200, ESTIMATE),
            ),
            ("no usage", usage(json!(null)), passed(200, ESTIMATE)),
            ("empty usage", usage(json!({})), passed(200, ESTIMATE)),
            (
                "negative usage",
                usage(json!({"prompt_tokens": -1, "completion_tokens": 5})),
                passed(200, ESTIMATE),
            ),
            (
                "absurd usage",
                usage(json!({"prompt_tokens": 2_000_000_000_u64, "completion_tokens": 5})),
                passed(200, ESTIMATE),
            ),
            ("no JSON", Answer::bytes(200, "hello"), passed(200, ESTIMATE)),
            ("nothing", Answer::bytes(200, ""), passed(200, ESTIMATE)),
            (
                "no content",
                Answer::raw("HTTP/1.1 204 No Content\r\n\r\n").keep_open(),
                passed(204, ESTIMATE),
            ),
            ("400", Answer::error(400, "bad", "no"), passed(400, 0)),
            ("401", Answer::error(401, "invalid_api_key", "no"), passed(401, 0)),
            (
                "429",
                Answer::error(429, "rate", "slow").header("Retry-After", "7"),
                passed(429, 0),
            ),
            ("408", Answer::error(408, "timeout", "no"), passed(408, 0)),
            ("499", Answer::bytes(499, "odd"), passed(499, 0)),
            (
                "500",
                Answer::error(500, "server_error", "no"),
                passed(500, ESTIMATE),
            ),
            (
                "503",
                Answer::error(503, "overloaded", "no"),
                passed(503, ESTIMATE),
            ),
            ("599", Answer::bytes(599, "odd"), passed(599, ESTIMATE)),
            (
                "301",
                Answer::bytes(301, "").header("Location", "/v1/elsewhere"),
                passed(301, ESTIMATE),
            ),
            (
                "307",
                Answer::bytes(307, "").header("Location", "/v1/elsewhere"),
                passed(307, ESTIMATE),
            ),
            (
                "304",
                Answer::raw("HTTP/1.1 304 Not Modified\r\n\r\n").keep_open(),
                passed(304, ESTIMATE),
            ),
        ],
    )
    .await;
}

/// The bytes of an answer are the caller's, compressed or not; so are its headers, less those of the connection.
#[tokio::test]
async fn bytes_and_headers_are_unchanged() {
    let stage = Setup::default().start().await;
    let text = "\u{1F6AA} ünïcode \\u0000 sk-not-an-error".repeat(50);
    let plain =
        json!({ "choices": [], "text": text, "usage": { "prompt_tokens": 9, "completion_tokens": 12 } });
    let shape = |answer: Answer| {
        answer
            .header("X-Request-Id", "req-of-the-provider")
            .header("openai-processing-ms", "12")
            .header("x-ratelimit-remaining-requests", "9")
            .header("Set-Cookie", "session=secret")
            .header("X-Service-Decision", "forged")
            .header("X-Hop", "1")
            .header("Connection", "X-Hop")
    };
    let sent = plain.to_string().into_bytes();
    let compressed = shape(Answer::json(200, plain.clone())).gzip();
    for (answer, bytes) in [
        (shape(Answer::json(200, plain)).chunked(13), Some(sent)),
        (compressed, None),
    ] {
        stage.upstream.set(move |_| answer.clone());
        let mut raw = stage.raw().await;
        assert!(raw.send_chat(&stage.key, "", body().to_string().as_bytes()).await);
        let reply = raw.reply(SOON).await.expect("an answer");
        assert_eq!(reply.status, 200);
        match bytes {
            Some(bytes) => assert_eq!(reply.body, bytes),
            None => {
                assert_eq!(reply.header("content-encoding"), Some("gzip"));
                assert_eq!(reply.body[..2], [0x1f, 0x8b], "as compressed by the provider");
            }
        }
        assert_eq!(
            reply.header("content-length"),
            Some(reply.body.len().to_string().as_str())
        );
        assert_eq!(reply.header("x-request-id"), Some("req-of-the-provider"));
        assert_eq!(reply.header("openai-processing-ms"), Some("12"));
        assert_eq!(reply.header("x-ratelimit-remaining-requests"), Some("9"));
        assert_eq!(
            reply.header("x-service-decision"),
            Some("approved"),
            "not the provider's"
        );
        assert_eq!(reply.head.to_lowercase().matches("x-service-decision").count(), 1);
        for gone in ["set-cookie", "x-hop", "transfer-encoding"] {
            assert_eq!(reply.header(gone), None, "{gone}");
        }
    }
    stage.settled_at(2 * ACTUAL).await;
}
