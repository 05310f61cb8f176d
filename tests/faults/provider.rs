//! A provider that does not answer as it should. Whatever it does: one request for each approval, an answer for the
//! caller, and the estimate stays charged unless the provider itself said otherwise (decisions D33, D35, D64).

use crate::stage::{ACTUAL, ESTIMATE, SOON, Setup, Stage, answer, body, usd};
use harness::{Answer, Reply};
use serde_json::json;
use std::time::{Duration, Instant};

/// What a call shall come to.
struct Expected {
    status: u16,
    /// `error.code`, where it is ours.
    code: &'static str,
    charged: u64,
    /// The answer says that repeating the call is charged again.
    charged_failure: bool,
}

const fn broken() -> Expected {
    Expected {
        status: 502,
        code: "upstream_unreachable",
        charged: ESTIMATE,
        charged_failure: true,
    }
}

const fn late() -> Expected {
    Expected {
        status: 504,
        code: "upstream_timeout",
        charged: ESTIMATE,
        charged_failure: true,
    }
}

const fn passed(status: u16, charged: u64) -> Expected {
    let charged_failure = status / 100 != 2 && status / 100 != 4;
    Expected {
        status,
        code: "",
        charged,
        charged_failure,
    }
}

fn stamped(reply: &Reply, what: &str) {
    let estimate = usd(ESTIMATE);
    assert_eq!(reply.header("x-service-decision"), Some("approved"), "{what}");
    assert!(
        reply
            .header("x-service-allow-id")
            .is_some_and(|id| id.starts_with("allow_")),
        "{what}"
    );
    assert!(
        reply
            .header("x-service-run-id")
            .is_some_and(|id| id.starts_with("req_")),
        "{what}"
    );
    assert_eq!(
        reply.header("x-service-estimated-usd"),
        Some(estimate.as_str()),
        "{what}"
    );
}

/// Plays each answer to one call and checks caller, provider and ledger.
async fn each(stage: &Stage, cases: Vec<(&'static str, Answer, Expected)>) {
    let mut charged = 0;
    for (at, (what, answer, expected)) in cases.into_iter().enumerate() {
        stage.upstream.set(move |_| answer.clone());
        let reply = stage.call().await;
        assert_eq!(reply.status, expected.status, "{what}: {reply:?}");
        if !expected.code.is_empty() {
            assert_eq!(reply.error_code(), expected.code, "{what}");
        }
        stamped(&reply, what);
        let warning = expected.charged_failure.then_some("false");
        assert_eq!(reply.header("x-should-retry"), warning, "{what}");
        let actual = (expected.status == 200 && expected.charged == ACTUAL).then(|| usd(ACTUAL));
        assert_eq!(reply.header("x-service-actual-usd"), actual.as_deref(), "{what}");
        charged += expected.charged;
        stage.settled_at(charged).await;
        assert_eq!(
            stage.upstream.arrived(),
            at + 1,
            "{what}: one request for one approval"
        );
    }
    // Whatever was left on its connections, the next call is as if nothing had been.
    stage.upstream.set(|_| answer());
    stage.approved_call().await;
}

#[tokio::test]
async fn broken_answers_are_502_and_stay_charged() {
    let stage = Setup::default()
        .env("UPSTREAM__MAX_RESPONSE_BYTES", 100_000)
        .start()
        .await;
    let long = || Answer::bytes(200, vec![b'x'; 100_001]);
    let chunk = |bytes: &str| {
        Answer::raw(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{bytes}"
        ))
    };
    each(
        &stage,
        vec![
            ("reset at once", Answer::reset(), broken()),
            ("reset in the head", answer().reset_after(30), broken()),
            ("reset in the body", answer().reset_after(200), broken()),
            ("closed at once", Answer::raw(""), broken()),
            (
                "closed in the head",
                Answer::raw("HTTP/1.1 200 OK\r\nContent-Le"),
                broken(),
            ),
            ("truncated", answer().truncated(5), broken()),
            (
                "truncated to nothing",
                Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
                broken(),
            ),
            (
                "garbage",
                Answer::raw("\u{1}\u{2}\u{3} garbage\r\n\r\n"),
                broken(),
            ),
            (
                "a banner of something else",
                Answer::raw("SSH-2.0-OpenSSH_9.2\r\n"),
                broken(),
            ),
            (
                "a status that is none",
                Answer::raw("HTTP/1.1 abc OK\r\n\r\n"),
                broken(),
            ),
            (
                "chunk size that is no number",
                chunk("zz\r\nhello\r\n0\r\n\r\n"),
                broken(),
            ),
            ("chunk without its end", chunk("5\r\nhel"), broken()),
            ("chunks without an end", chunk("5\r\nhello\r\n"), broken()),
            ("too long", long(), broken()),
            ("too long in chunks", long().chunked(1000), broken()),
            ("too long until the close", long().until_close(), broken()),
            (
                "length and chunks",
                Answer::raw(
                    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                ),
                broken(),
            ),
            (
                "two lengths",
                Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
                broken(),
            ),
            (
                "only interim answers",
                (0..20).fold(answer(), |answer, _| answer.interim(103)),
                broken(),
            ),
            (
                "another protocol",
                Answer::raw("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
                broken(),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn silent_providers_are_504_and_stay_charged() {
    let stage = Setup::default().env("UPSTREAM__TIMEOUT_MS", 1000).start().await;
    let started = Instant::now();
    each(
        &stage,
        vec![
            ("never answers", Answer::hang(), late()),
            ("stalls in the head", answer().stall_after(20), late()),
            ("stalls in the body", answer().stall_after(200), late()),
            (
                "drips its head",
                answer().trickle(1, Duration::from_millis(100)),
                late(),
            ),
            (
                "drips its body",
                Answer::chat(9, 12).trickle(50, Duration::from_millis(400)),
                late(),
            ),
            (
                "interim answers, then nothing",
                answer().interim(102).stall_after(1),
                late(),
            ),
        ],
    )
    .await;
    assert!(
        started.elapsed() >= Duration::from_secs(6),
        "each took its second"
    );
}

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
                Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"),
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
                Answer::raw("HTTP/1.1 304 Not Modified\r\n\r\n"),
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

#[tokio::test]
async fn a_provider_that_is_not_there_is_502() {
    let stage = Setup::default().start().await;
    stage.approved_call().await;
    stage.upstream.stop();
    for round in 1..=3 {
        let reply = stage.call().await;
        assert_eq!(
            (reply.status, reply.error_code().as_str()),
            (502, "upstream_unreachable")
        );
        stamped(&reply, "refused");
        assert_eq!(reply.header("x-should-retry"), Some("false"));
        stage.settled_at(ACTUAL + round * ESTIMATE).await;
    }
    assert_eq!(stage.upstream.arrived(), 1);
}
