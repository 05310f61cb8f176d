//! Malformed HTTP: the edge refuses it or ends the connection, and takes nothing in it for a call.

use crate::fixture::{SOON, Setup, body};
use harness::{RawClient, RawReply, until};
use std::time::Duration;
use tokio::time::timeout;

const LINE: &str = "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nContent-Type: application/json\r\n";

/// A whole call, to be smuggled behind something else.
fn call(key: &str) -> String {
    let body = body().to_string();
    let length = body.len();
    format!("{LINE}Authorization: Bearer {key}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Heads that end their connection, each followed by a whole call that must not be taken for one.
fn malformed(key: &str) -> Vec<(&'static str, String)> {
    let auth = format!("Authorization: Bearer {key}\r\n");
    let head = |lines: &str| format!("{LINE}{auth}{lines}\r\n");
    vec![
        ("garbage", "\x01\x02\x03 garbage \x7f\r\n\r\n".to_owned()),
        (
            "TLS",
            "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03 \r\n\r\n".to_owned(),
        ),
        ("no version", "POST /v1/chat/completions\r\n\r\n".to_owned()),
        (
            "version 9",
            "POST /v1/chat/completions HTTP/9.9\r\nHost: e\r\n\r\n".to_owned(),
        ),
        (
            "empty method",
            " /v1/chat/completions HTTP/1.1\r\nHost: e\r\n\r\n".to_owned(),
        ),
        ("header without colon", head("nonsense\r\n")),
        ("space before the colon", head("Content-Length : 5\r\n")),
        ("folded header", head("X-A: 1\r\n Content-Length: 5\r\n")),
        ("NUL in a header", head("X-A: a\0b\r\n")),
        ("negative length", head("Content-Length: -1\r\n")),
        ("signed length", head("Content-Length: +5\r\n")),
        ("hexadecimal length", head("Content-Length: 0x5\r\n")),
        ("length that is no number", head("Content-Length: five\r\n")),
        ("length of a list", head("Content-Length: 5, 6\r\n")),
        ("empty length", head("Content-Length: \r\n")),
        ("two lengths", head("Content-Length: 5\r\nContent-Length: 6\r\n")),
        (
            "length beyond 64 bits",
            head("Content-Length: 99999999999999999999999\r\n"),
        ),
        (
            "length and chunks",
            head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n",
        ),
        (
            "chunks and length",
            head("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n",
        ),
    ]
}

/// Everything the edge says until it closes: the statuses of its answers.
async fn statuses(raw: &mut RawClient) -> Vec<String> {
    let received = raw.read_to_end(SOON).await;
    let received = String::from_utf8_lossy(&received).into_owned();
    let lines = received.split("HTTP/1.1 ").skip(1);
    lines.map(|rest| rest[..3].to_owned()).collect()
}

#[tokio::test]
async fn malformed_http_is_refused_and_hides_no_call() {
    let fixture = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 2000)
        .start()
        .await;
    for (what, head) in malformed(&fixture.key) {
        // The hidden call arrives with the head, or after the edge has read the head.
        for pause_ms in [0, 50] {
            let mut raw = fixture.raw().await;
            assert!(raw.send(&head).await);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            let _ = raw.send(call(&fixture.key)).await;
            let received = statuses(&mut raw).await;
            assert!(received.len() <= 1, "{what}: {received:?}");
            let mut refusals = received.iter().map(String::as_str);
            assert!(
                refusals.all(|status| ["400", "408", "413"].contains(&status)),
                "{what}: {received:?}"
            );
            assert_eq!(fixture.upstream.arrived(), 0, "{what} was forwarded");
        }
    }
    fixture.settled_at(0).await;
    fixture.approved_call().await;
}

/// A broken body hides no call either when the key has used up its rate, which changes the answer.
#[tokio::test]
async fn a_broken_body_hides_no_call_behind_a_denial() {
    let fixture = Setup::default().start().await;
    fixture.bot.frozen(true).await;
    fixture.bot.account.set_plan("free").await;
    for round in 0..15 {
        let mut raw = fixture.raw().await;
        let head = format!(
            "{LINE}Authorization: Bearer {}\r\nTransfer-Encoding: chunked\r\n\r\n",
            fixture.key
        );
        assert!(raw.send(head + "zz\r\n{}\r\n0\r\n\r\n").await);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let _ = raw.send(call(&fixture.key)).await;
        let expected = if round < 10 { "400" } else { "429" };
        assert_eq!(statuses(&mut raw).await, [expected], "call {round}");
    }
    assert_eq!(fixture.rate(), 15, "no hidden call was counted");
}

#[tokio::test]
async fn a_head_without_end_is_cut_off() {
    let fixture = Setup::default().start().await;
    let padding = "a".repeat(16 << 10);
    let mut long_line = fixture.raw().await;
    assert!(long_line.send(LINE).await);
    let mut sent = 0;
    while sent < 64 << 20 && long_line.send(format!("X-{sent}: {padding}\r\n")).await {
        sent += padding.len();
    }
    assert!(sent < 64 << 20, "64 MiB of headers were read");
    assert!(
        statuses(&mut long_line)
            .await
            .iter()
            .all(|status| status == "431")
    );
    let mut many = fixture.raw().await;
    let lines: String = (0..5000).map(|number| format!("X-{number}: 1\r\n")).collect();
    let _ = many.send(LINE).await && many.send(lines).await && many.send("\r\n").await;
    assert!(statuses(&mut many).await.iter().all(|status| status == "400"));
    assert_eq!(fixture.upstream.arrived(), 0);
    fixture.approved_call().await;
}

#[tokio::test]
async fn a_dripping_head_blocks_no_other_call_and_ends() {
    let fixture = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 3_000)
        .start()
        .await;
    let mut drips = Vec::new();
    for _ in 0..200 {
        let mut raw = fixture.raw().await;
        assert!(raw.send("POST /v1/chat/completions HTT").await);
        drips.push(raw);
    }
    fixture.approved_call().await;
    // No dripped head is complete; the approved call may take a moment to leave the count.
    until("no request under way", async || {
        fixture.metric("tollgate_proxy_in_flight") == 0
    })
    .await;
    for mut drip in drips {
        let reply = drip.reply(SOON).await.expect("an answer");
        assert_eq!(reply.status, 408, "{}", reply.head);
        stamped(&reply);
        assert!(drip.closed(SOON).await);
    }
}

/// A further head of a connection has a deadline as well, from its first bytes on, however often some more of it comes.
#[tokio::test]
async fn a_head_that_drips_on_a_used_connection_ends() {
    let fixture = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 700)
        .start()
        .await;
    let mut raw = fixture.raw().await;
    let call = body().to_string();
    for _ in 0..2 {
        assert!(raw.send_chat(&fixture.key, "", call.as_bytes()).await);
        assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
        // A connection may be idle for longer than this deadline between two requests.
        tokio::time::sleep(Duration::from_millis(1000)).await;
    }
    assert!(raw.send(LINE).await);
    let drips = async {
        loop {
            assert!(raw.send("X-Drip: 1\r\n").await, "closed without an answer");
            if let Some(reply) = raw.reply(Duration::from_millis(50)).await {
                return reply;
            }
        }
    };
    let reply = timeout(SOON, drips).await.expect("an end");
    assert_eq!(reply.status, 408, "{}", reply.head);
    assert!(reply.text().contains("\"code\":\"request_timeout\""), "{reply:?}");
    assert_eq!(reply.header("connection"), Some("close"), "{}", reply.head);
    stamped(&reply);
    let logs = fixture.edge.logs();
    assert!(!logs.contains("Fail to proxy"), "strangers fill the log: {logs}");
    fixture.approved_call().await;
}

/// An answer to an unreadable head carries the common headers all the same.
#[track_caller]
fn stamped(reply: &RawReply) {
    for name in ["x-request-id: req_", "x-service-overhead-ms: "] {
        assert!(reply.head.to_ascii_lowercase().contains(name), "{}", reply.head);
    }
}

#[tokio::test]
async fn malformed_http_is_answered_like_other_refusals() {
    let fixture = Setup::default().start().await;
    for is_first in [true, false] {
        let mut raw = fixture.raw().await;
        if !is_first {
            let call = body().to_string();
            assert!(raw.send_chat(&fixture.key, "", call.as_bytes()).await);
            assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
        }
        assert!(
            raw.send("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n")
                .await
        );
        let reply = raw.reply(SOON).await.expect("an answer");
        assert_eq!(reply.status, 400, "first: {is_first}: {}", reply.head);
        assert!(reply.text().contains("\"code\":\"bad_request\""), "{reply:?}");
        stamped(&reply);
        assert!(raw.closed(SOON).await, "one answer, and no more");
    }
    assert_eq!(
        fixture.metric("tollgate_proxy_refused_total{code=\"bad_request\"}"),
        2
    );
}
