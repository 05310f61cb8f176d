//! A provider that does not answer as it should. Whatever it does: one request for each approval, an answer for the
//! caller, and the estimate stays charged unless the provider itself said otherwise (decisions D33, D35, D64).

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, Setup, answer, usd};
use harness::{Answer, Reply};
use serde_json::json;
use std::time::{Duration, Instant};

/// Expected outcome of a call.
struct Expected {
    status: u16,
    /// `error.code` of the edge's own errors; empty if the provider's answer passes.
    code: &'static str,
    /// The answer says that repeating the call is charged again.
    charged_failure: bool,
}

const fn broken() -> Expected {
    Expected {
        status: 502,
        code: "upstream_unreachable",
        charged_failure: true,
    }
}

const fn late() -> Expected {
    Expected {
        status: 504,
        code: "upstream_timeout",
        charged_failure: true,
    }
}

/// The answer passes, and no cost is claimed.
const fn kept() -> Expected {
    Expected {
        status: 200,
        code: "",
        charged_failure: false,
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
async fn each(fixture: &Fixture, cases: Vec<(&'static str, Answer, Expected)>) {
    let mut charged = 0;
    for (at, (what, answer, expected)) in cases.into_iter().enumerate() {
        fixture.upstream.set(move |_| answer.clone());
        let reply = fixture.call().await;
        assert_eq!(reply.status, expected.status, "{what}: {reply:?}");
        if !expected.code.is_empty() {
            assert_eq!(reply.error_code(), expected.code, "{what}");
        }
        stamped(&reply, what);
        let warning = expected.charged_failure.then_some("false");
        assert_eq!(reply.header("x-should-retry"), warning, "{what}");
        assert_eq!(reply.header("x-service-actual-usd"), None, "{what}");
        charged += ESTIMATE;
        fixture.settled_at(charged).await;
        assert_eq!(
            fixture.upstream.arrived(),
            at + 1,
            "{what}: one request for one approval"
        );
    }
    // Bytes that were left on its connections do not affect the next call.
    fixture.upstream.set(|_| answer());
    fixture.approved_call().await;
}

#[tokio::test]
async fn broken_answers_are_502_and_stay_charged() {
    let fixture = Setup::default()
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
        &fixture,
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
                "another transfer coding",
                Answer::raw(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                ),
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
                "a head that Node does not read",
                answer().header("X-Long", &"a".repeat(15 << 10)),
                broken(),
            ),
            (
                "gzip that is none",
                answer().header("Content-Encoding", "gzip"),
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

/// Answers without usage, or with an implausible one.
#[tokio::test]
async fn answers_without_a_believable_usage_pass_and_keep_the_estimate() {
    let fixture = Setup::default().start().await;
    let usage = |usage| Answer::chat_with_usage(usage);
    each(
        &fixture,
        vec![
            (
                "an encoding nobody knows",
                answer().header("Content-Encoding", "zz"),
                kept(),
            ),
            ("no usage", usage(json!(null)), kept()),
            ("empty usage", usage(json!({})), kept()),
            (
                "negative usage",
                usage(json!({"prompt_tokens": -1, "completion_tokens": 5})),
                kept(),
            ),
            (
                "absurd usage",
                usage(json!({"prompt_tokens": 2_000_000_000_u64, "completion_tokens": 5})),
                kept(),
            ),
            ("no JSON", Answer::bytes(200, "hello"), kept()),
            ("nothing", Answer::bytes(200, ""), kept()),
        ],
    )
    .await;
}

/// `usage_tokens_max` of the upstream: 12 tokens of [`answer`] are at it.
#[tokio::test]
async fn a_usage_beyond_the_bound_of_the_upstream_keeps_the_estimate() {
    let fixture = Setup::default()
        .env("UPSTREAM__USAGE_TOKENS_MAX", 12)
        .start()
        .await;
    let usage = |prompt: u64, completion: u64| {
        Answer::chat_with_usage(json!({ "prompt_tokens": prompt, "completion_tokens": completion }))
    };
    // Behind them `each` makes a call whose usage is at the bound.
    each(
        &fixture,
        vec![
            ("a prompt beyond the bound", usage(13, 12), kept()),
            ("a completion beyond the bound", usage(12, 13), kept()),
        ],
    )
    .await;
    let ignored = fixture
        .edge
        .metric_sum("tollgate_proxy_upstream_ignored_usages_total");
    assert_eq!(ignored, Some(2));
}

#[tokio::test]
async fn silent_providers_are_504_and_stay_charged() {
    let fixture = Setup::default().env("UPSTREAM__TIMEOUT_MS", 1000).start().await;
    let started = Instant::now();
    each(
        &fixture,
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
async fn a_provider_that_is_not_there_is_502() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    fixture.upstream.stop();
    for round in 1..=3 {
        let reply = fixture.call().await;
        assert_eq!(
            (reply.status, reply.error_code().as_str()),
            (502, "upstream_unreachable")
        );
        stamped(&reply, "refused");
        assert_eq!(reply.header("x-should-retry"), Some("false"));
        fixture.settled_at(ACTUAL + round * ESTIMATE).await;
    }
    assert_eq!(fixture.upstream.arrived(), 1);
}
