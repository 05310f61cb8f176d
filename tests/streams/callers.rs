//! Callers who leave, and callers who do not read.

use crate::fixture::{Fixture, HELD, SOON, chunk, finish, open_cap, usage, usage_frame};
use harness::{RawClient, Script, until};
use serde_json::json;
use std::time::Duration;

/// A caller who hangs up pays the provider's bill: the edge reads on to the usage, at every phase of the stream.
#[tokio::test]
async fn a_caller_who_leaves_pays_the_real_cost() {
    let fixture = Fixture::new().await;
    for phase in 0..3 {
        for reset in [true, false] {
            let (actor, feed, mut stream) = fixture.open_fed().await;
            if phase > 0 {
                feed.send(chunk("one"));
                stream.until("one").await;
            }
            if phase > 1 {
                // In the middle of an event, which passes only when it is complete.
                feed.send(&chunk("two")[..50]);
            }
            match reset {
                true => stream.reset(),
                false => drop(stream),
            }
            assert_eq!(actor.agent.counters().await.day_nanos, HELD, "what is held stays");
            if phase > 1 {
                feed.send(&chunk("two")[50..]);
            }
            feed.send(chunk("three"));
            finish(&feed, 12);
            assert_eq!(actor.settled().await, 12, "{phase} {reset}");
        }
    }
    until("the end of the streams", async || {
        fixture.edge.metric("tollgate_proxy_streams_open") == Some(0)
    })
    .await;
    let ended = |end: &str| -> u64 {
        let series = format!("tollgate_proxy_streams_total{{end=\"{end}\"}}");
        fixture.edge.metric(&series).expect("the metric")
    };
    // An edge on a busy machine can have all of a stream before it sees that the caller has left.
    assert_eq!(ended("caller_gone") + ended("completed"), 6);
    let of_upstream = r#"tollgate_proxy_upstream_answers_total{result="2xx",upstream="openai"}"#;
    assert_eq!(fixture.edge.metric(of_upstream), Some(6));
}

/// Bytes that a caller sends during a stream are no disconnection: they are the next requests, answered after the
/// stream.
#[tokio::test]
async fn a_caller_who_sends_something_keeps_his_stream() {
    let fixture = Fixture::new().await;
    let pipelined = "GET /v1/health HTTP/1.1\r\nHost: edge\r\n\r\n";
    for (sent, requests) in [("\r\n", 0), (pipelined, 1), (&pipelined.repeat(300), 300)] {
        let (actor, feed, mut stream) = fixture.open_fed().await;
        feed.send(chunk("one"));
        stream.until("one").await;
        stream.send(sent).await;
        feed.send(chunk("two"));
        stream.until("two").await;
        stream.send(sent).await;
        feed.send(chunk("three"));
        finish(&feed, 12);
        assert!(stream.rest().await.ends_with("data: [DONE]\n\n"));
        stream
            .send(&pipelined.replacen("Host", "Connection: close\r\nHost", 1))
            .await;
        let answered = stream.behind().await;
        assert_eq!(answered.matches("HTTP/1.1 200 OK\r\n").count(), 2 * requests + 1);
        assert_eq!(actor.settled().await, 12);
    }
    let completed = "tollgate_proxy_streams_total{end=\"completed\"}";
    assert_eq!(fixture.metric(completed).await, 3);
    // The edge notices that a caller left after such bytes when it writes to the connection.
    let (actor, feed, mut stream) = fixture.open_fed().await;
    stream.send("\r\n").await;
    feed.send(chunk("one"));
    stream.until("one").await;
    stream.reset();
    // Each piece is a write of its own, and one after the reset fails.
    for _ in 0..10 {
        feed.send(chunk("two"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    finish(&feed, 12);
    assert_eq!(actor.settled().await, 12);
    let gone = "tollgate_proxy_streams_total{end=\"caller_gone\"}";
    assert_eq!(
        (fixture.metric(gone).await, fixture.metric(completed).await),
        (1, 3)
    );
}

/// HTTP/1.0 has no chunks: the end of the connection is the end of the body, whatever the caller asks for.
#[tokio::test]
async fn a_stream_over_http_1_0_ends_with_its_connection() {
    let fixture = Fixture::new().await;
    let script = Script::chat(&["a", "b"], &usage(9, 12));
    fixture.provider_streams(script.clone());
    let body = crate::fixture::body(json!({ "stream_options": { "include_usage": true } })).to_string();
    for connection in ["", "Connection: keep-alive\r\n", "Connection: close\r\n"] {
        let actor = fixture.actor("enterprise", open_cap()).await;
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.0\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{connection}\r\n",
            actor.key,
            body.len()
        );
        assert!(raw.send(head + &body).await);
        let reply = raw.reply(SOON).await.expect("an answer that ends");
        assert_eq!(reply.status, 200, "{}", reply.head);
        assert_eq!(reply.header("connection"), Some("close"), "{connection}");
        for absent in ["transfer-encoding", "content-length"] {
            assert_eq!(reply.header(absent), None, "{connection}");
        }
        assert_eq!(reply.body, script.bytes());
        assert_eq!(actor.settled().await, 12);
    }
}

/// The edge waits for the usage only within a bound. After that the held amount stays charged, and the edge closes the
/// provider's connection.
#[tokio::test]
async fn the_usage_is_awaited_within_a_bound() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__STREAM_DRAIN_MS", "500")).await;
    let (actor, feed, mut stream) = fixture.open_fed().await;
    feed.send(chunk("one"));
    stream.until("one").await;
    stream.reset();
    feed.wait_for_peer_gone(SOON).await;
    assert_eq!(actor.settled().await, HELD);
    let metrics = fixture.edge.ops("/metrics").unwrap().1;
    for line in [
        "tollgate_proxy_streams_drained_total{usage=\"missing\"} 1",
        "tollgate_proxy_streams_drained_total{usage=\"reported\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

/// A stream whose caller is gone also ends at a maximum of bytes.
#[tokio::test]
async fn a_provider_without_end_is_not_read_for_ever() {
    let fixture = Fixture::new().await;
    let (actor, feed, mut stream) = fixture.open_fed().await;
    feed.send(chunk("one"));
    stream.until("one").await;
    stream.reset();
    for _ in 0..20 {
        feed.send(": ".to_owned() + &"x".repeat(1 << 20) + "\n\n");
    }
    feed.wait_for_peer_gone(SOON).await;
    assert_eq!(actor.settled().await, HELD);
}

/// A caller who does not read holds one piece, and is disconnected after the time-out. Others are not slowed.
#[tokio::test]
async fn a_caller_who_does_not_read_is_given_up() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__CLIENT_TIMEOUT_MS", "1000")).await;
    let slow = fixture.actor("enterprise", open_cap()).await;
    let endless = (0..200).fold(Script::new(), |script, _| {
        script.send(chunk(&"x".repeat(100_000)))
    });
    let all = endless.bytes().len();
    fixture.provider_streams(endless.send(usage_frame(12)).event("[DONE]"));
    let stream = fixture.open(&slow, json!({})).await;
    let quick = fixture.actor("enterprise", open_cap()).await;
    let mut other = fixture.open(&quick, json!({})).await;
    assert!(other.rest().await.len() > all - 1000);
    assert_eq!(quick.settled().await, 12);
    until("the end of the slow caller", async || {
        let gone = r#"tollgate_proxy_streams_total{end="caller_gone"}"#;
        fixture.edge.metric(gone) == Some(1)
    })
    .await;
    // The rest was read to the bound of bytes, or to the usage: in either case the hold ended.
    let charged = slow.settled().await;
    assert!(charged == 12 || charged >= HELD, "{charged}");
    drop(stream);
}

/// An HTTP/2 caller resets one stream of his connection; another one goes on.
#[tokio::test]
async fn an_http2_caller_who_resets_a_stream_pays_the_real_cost() {
    let fixture = Fixture::new().await;
    let (actor, feed) = fixture.fed_actor().await;
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    let send = || {
        client
            .post(format!("{}/v1/chat/completions", fixture.edge.url()))
            .bearer_auth(&actor.key)
            .json(&crate::fixture::body(json!({})))
            .send()
    };
    let mut answer = send().await.unwrap();
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    feed.send(chunk("one"));
    assert!(answer.chunk().await.unwrap().is_some());
    drop(answer);
    finish(&feed, 12);
    assert_eq!(actor.settled().await, 12);
    fixture.provider_streams(Script::chat(&["a"], &usage(9, 12)));
    let text = send().await.unwrap().text().await.unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(actor.settled().await, 24);
}

/// Streams of one HTTP/2 connection that its caller resets by the hundred, each after its first bytes: all are settled
/// to the real cost, and another stream of the connection goes on.
#[tokio::test]
async fn streams_reset_by_the_hundred_are_settled() {
    const STREAMS: u64 = 300;
    let fixture = Fixture::new().await;
    let (actor, feed) = fixture.fed_actor().await;
    let client = reqwest::Client::builder().http2_prior_knowledge();
    let client = client.build().unwrap();
    let open = async || {
        let request = client.post(format!("{}/v1/chat/completions", fixture.edge.url()));
        let request = request
            .bearer_auth(&actor.key)
            .json(&crate::fixture::body(json!({})));
        let mut answer = request.send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.version()),
            (200, reqwest::Version::HTTP_2)
        );
        let first = answer.chunk().await.unwrap().unwrap();
        assert!(first.starts_with(b"data: "), "{first:?}");
        answer
    };
    feed.send(chunk("one"));
    let other = open().await;
    let script = Script::new().send(chunk("one")).pause(Duration::from_millis(200));
    fixture.provider_streams(script.send(usage_frame(12)).event("[DONE]"));
    for _ in 0..STREAMS {
        drop(open().await);
    }
    assert_eq!(fixture.metric("tollgate_proxy_connections").await, 1);
    finish(&feed, 12);
    let rest = other.text().await.unwrap();
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");
    assert_eq!(actor.settled().await, (STREAMS + 1) * 12);
    for gauge in ["tollgate_proxy_in_flight", "tollgate_proxy_streams_open"] {
        until("nothing in flight", async || fixture.metric(gauge).await == 0).await;
    }
    assert!(open().await.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    assert_eq!(fixture.metric("tollgate_proxy_connections").await, 1);
    let gone = fixture
        .metric("tollgate_proxy_streams_total{end=\"caller_gone\"}")
        .await;
    assert!(gone > STREAMS / 2, "{gone}");
    fixture.ledger_check().await.is_in_order();
}
