//! Tests of the scripted streams of the mock provider.

use super::*;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

const SOON: Duration = Duration::from_secs(30);

/// A connection on which one request was sent.
async fn send_request(upstream: &Upstream) -> TcpStream {
    let mut stream = TcpStream::connect(upstream.addr()).await.unwrap();
    let request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(request).await.unwrap();
    stream
}

/// Reads until `text` has arrived, and returns everything before and with it.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains(text) {
        let read = tokio::time::timeout(SOON, stream.read_buf(&mut received)).await;
        assert!(
            read.unwrap().unwrap() > 0,
            "ended with {:?}",
            String::from_utf8_lossy(&received)
        );
    }
    String::from_utf8_lossy(&received).into_owned()
}

#[tokio::test]
async fn a_script_is_sent_in_its_pieces() {
    let gate = Arc::new(Notify::new());
    let script = Script::new()
        .send("data: a\n\n")
        .wait_for(&gate)
        .in_pieces(2, "über");
    let upstream = Upstream::start(move |_| Answer::stream(script.clone()));
    let mut stream = send_request(&upstream).await;
    let first = until(&mut stream, "9\r\ndata: a\n\n\r\n").await;
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    assert!(first.contains("Content-Type: text/event-stream"), "{first}");
    assert!(first.contains("Transfer-Encoding: chunked"), "{first}");
    assert!(upstream.played().is_empty(), "it waits at the gate");
    gate.notify_one();
    let rest = until(&mut stream, "0\r\n\r\n").await;
    assert_eq!(rest, "2\r\nü\r\n2\r\nbe\r\n1\r\nr\r\n0\r\n\r\n");
    let played = upstream.wait_for_end(0, SOON).await;
    assert_eq!((played.body_bytes, played.end), (14, End::Whole));
    // The connection goes on.
    upstream.set(|_| Answer::json(200, json!({ "next": true })));
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();
    until(&mut stream, "{\"next\":true}").await;
}

#[tokio::test]
async fn the_test_feeds_a_stream_by_hand() {
    let feed = Feed::new();
    let script = Script::new().feed(&feed).event("[DONE]");
    let upstream = Upstream::start(move |_| Answer::stream(script.clone()).until_close());
    let mut stream = send_request(&upstream).await;
    until(&mut stream, "\r\n\r\n").await;
    feed.event("1");
    assert_eq!(until(&mut stream, "1\n\n").await, "data: 1\n\n");
    feed.send("data: 2\r\n\r\n");
    assert_eq!(until(&mut stream, "2\r\n\r\n").await, "data: 2\r\n\r\n");
    feed.end();
    assert_eq!(until(&mut stream, "[DONE]\n\n").await, "data: [DONE]\n\n");
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "closed");
    assert!(!feed.is_peer_gone());
    assert_eq!(upstream.wait_for_end(0, SOON).await.end, End::Whole);
}

#[tokio::test]
async fn a_peer_that_goes_is_noticed_in_the_middle() {
    let feed = Feed::new();
    let fed = Script::new().feed(&feed);
    let gated = Script::new().send("x").wait_for(&Arc::new(Notify::new()));
    let hanging = Script::new().send("xy").hang();
    let scripts = [fed, gated, hanging];
    let upstream = Upstream::start(move |request| Answer::stream(scripts[request.number].clone()));
    for (number, bytes) in [(0, 0), (1, 1), (2, 2)] {
        let mut stream = send_request(&upstream).await;
        until(&mut stream, "\r\n\r\n").await;
        drop(stream);
        let played = upstream.wait_for_end(number, SOON).await;
        assert_eq!(
            (played.body_bytes, played.end),
            (bytes, End::PeerGone),
            "{number}"
        );
    }
    feed.wait_for_peer_gone(SOON).await;
}

#[tokio::test]
async fn a_stream_breaks_off_where_its_scenario_says() {
    let feed = Feed::new();
    feed.send("data");
    feed.reset();
    let scripts = [
        Script::new().send("data").break_off(),
        Script::new().send("data").reset(),
        Script::new().feed(&feed),
    ];
    let upstream = Upstream::start(move |request| Answer::stream(scripts[request.number].clone()));
    for number in 0..3 {
        let mut stream = send_request(&upstream).await;
        let mut received = Vec::new();
        let read = tokio::time::timeout(SOON, stream.read_to_end(&mut received))
            .await
            .unwrap();
        assert_eq!(read.is_ok(), number == 0, "reset or closed: {number}");
        assert!(!received.ends_with(b"0\r\n\r\n"));
        let played = upstream.wait_for_end(number, SOON).await;
        assert_eq!((played.body_bytes, played.end), (4, End::BrokenOff), "{number}");
    }
}

#[test]
fn ready_made_streams_have_the_shape_of_the_provider() {
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 2 });
    let chat = String::from_utf8(Script::chat(&["Hel", "lo"], &usage).bytes()).unwrap();
    let events: Vec<&str> = chat.split_terminator("\n\n").collect();
    assert_eq!(events.len(), 6, "{chat}");
    assert!(events[1].contains(r#""delta":{"content":"Hel"}"#), "{chat}");
    assert!(events[3].contains(r#""finish_reason":"stop""#), "{chat}");
    assert!(
        events[4].contains(r#""choices":[]"#) && events[4].contains(r#""prompt_tokens":9"#),
        "{chat}"
    );
    assert_eq!(events[5], "data: [DONE]");
    let without = Script::chat(&["x"], &json!(null)).bytes();
    assert!(!String::from_utf8(without).unwrap().contains("usage"));
    let usage = json!({ "input_tokens": 9, "output_tokens": 2 });
    let response = Script::response(&["Hello"], &usage);
    let text = String::from_utf8(response.bytes()).unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_text.delta",
            "response.completed"
        ]
    );
    assert!(text.contains(r#""input_tokens":9"#), "{text}");
    assert_eq!(response.clone().cut_anew(1).bytes(), response.bytes());
}
