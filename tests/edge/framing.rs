//! Bodies and answers of every size and framing pass unchanged, and never to another caller (decisions D34, D35, D64).

use super::fixture::{Fixture, SOON, estimated_body, open_cap};
use super::shape::approved;
use harness::{Answer, RawClient, Reply};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn bodies_of_all_sizes_arrive_whole_and_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    // Around Pingora's 64 KiB, and far beyond it.
    for (count, length) in [100, 65_535, 65_536, 65_537, 200_000, 1 << 20, 8 << 20]
        .into_iter()
        .enumerate()
    {
        let text = "0123456789abcdef".repeat(length / 16 + 1);
        let mut body = estimated_body(100);
        body["messages"][0]["content"] = text[..length].into();
        let body = body.to_string();
        let reply = actor
            .caller
            .send("POST", "/v1/chat/completions", &[], body.clone())
            .await;
        assert_eq!(reply.status, 200, "{length}: {}", reply.text());
        let requests = fixture.upstream.requests();
        assert_eq!(requests.len(), count + 1);
        assert!(
            requests[count].body == body.as_bytes(),
            "{length} bytes arrive unchanged"
        );
    }
    // A body without a declared length.
    let body = format!("{}{}", estimated_body(100), " ".repeat(70_000));
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        actor.key
    );
    raw.send(head).await;
    for piece in body.as_bytes().chunks(1000) {
        raw.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
            .await;
    }
    raw.send("0\r\n\r\n").await;
    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    let last = fixture.upstream.requests().pop().expect("a request");
    assert!(last.body == body.as_bytes(), "a chunked body arrives unchanged");
    assert_eq!(
        last.header("content-length"),
        Some(body.len().to_string().as_str())
    );
    assert_eq!(last.header("transfer-encoding"), None);
}

/// However the provider frames its answer, the caller gets the same bytes and the ledger the same cost.
#[tokio::test]
async fn answers_in_every_framing_are_passed_on_whole() {
    let fixture = Fixture::new().await;
    let plain = Answer::chat(9, 12);
    let long =
        json!({ "usage": { "prompt_tokens": 9, "completion_tokens": 12 }, "pad": "x".repeat(3_000_000) });
    let cases: Vec<(&str, Answer)> = vec![
        ("with a length", plain.clone()),
        ("in chunks", plain.clone().chunked(7)),
        ("until the connection closes", plain.clone().until_close()),
        ("with closing announced", plain.clone().close()),
        ("after interim answers", plain.clone().interim(103).interim(100)),
        (
            "byte by byte",
            plain.clone().trickle(40, Duration::from_millis(1)),
        ),
        ("compressed", plain.clone().gzip()),
        ("compressed in chunks", plain.gzip().chunked(11)),
        ("very long", Answer::json(200, long.clone())),
        ("very long in chunks", Answer::json(200, long).chunked(65_536)),
        (
            "created",
            Answer::json(
                201,
                json!({ "usage": { "prompt_tokens": 9, "completion_tokens": 12 } }),
            ),
        ),
    ];
    for (what, answer) in cases {
        let actor = fixture.actor("enterprise", open_cap()).await;
        let direct = {
            let answer = answer.clone();
            harness::Upstream::start(move |_| answer.clone())
        };
        let straight = harness::Caller::new(&format!("http://{}", direct.addr()), "")
            .chat(estimated_body(100))
            .await;
        fixture.upstream.set(move |_| answer.clone());
        let before = fixture.upstream.arrived();
        let reply: Reply = actor.caller.chat(estimated_body(100)).await;
        assert_eq!(reply.status, straight.status, "{what}");
        assert!(reply.body == straight.body, "{what}: the body is the provider's");
        for name in ["content-type", "content-encoding"] {
            assert_eq!(reply.header(name), straight.header(name), "{what}");
        }
        approved(&reply);
        assert_eq!(
            reply.header("x-service-actual-usd"),
            Some("0.000000012"),
            "{what}"
        );
        assert_eq!(actor.agent.counters().await.day_nanos, 12, "{what}");
        assert_eq!(fixture.upstream.arrived(), before + 1, "{what}");
    }
}

/// Answers that have no body by their status: whatever the provider announces, the connection stays in step.
#[tokio::test]
async fn an_answer_without_a_body_is_written_without_one() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__STREAMING", "true")).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let events = "Content-Type: text/event-stream\r\n";
    for status in ["204 No Content", "304 Not Modified"] {
        for framing in [
            "Content-Length: 5\r\n\r\nhello",
            "Content-Length: 0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "\r\n",
        ] {
            for kind in ["", events] {
                let answer = Answer::raw(format!("HTTP/1.1 {status}\r\n{kind}{framing}")).keep_open();
                fixture.upstream.set(move |_| answer.clone());
                for stream in [false, true] {
                    let mut body = estimated_body(100);
                    body["stream"] = stream.into();
                    let mut raw = RawClient::connect(fixture.edge.addr()).await;
                    assert!(raw.send_chat(&actor.key, "", body.to_string().as_bytes()).await);
                    let what = format!("{status} {kind}{framing} {stream}");
                    let reply = raw.reply(SOON).await.unwrap_or_else(|| panic!("{what}"));
                    assert_eq!(reply.status.to_string(), status[..3], "{what}");
                    for absent in ["content-length", "transfer-encoding"] {
                        assert_eq!(reply.header(absent), None, "{what}: {}", reply.head);
                    }
                    raw.send("GET /v1/health HTTP/1.1\r\nHost: edge\r\n\r\n").await;
                    let next = raw.reply(SOON).await.unwrap_or_else(|| panic!("{what}"));
                    assert_eq!(next.status, 200, "{what}: {next:?}");
                }
            }
        }
    }
}
