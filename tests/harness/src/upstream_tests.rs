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
    assert_eq!((played.body_bytes, played.end), (14, PlayEnd::Whole));
    // The connection stays usable.
    upstream.set(|_| Answer::json(200, json!({ "next": true })));
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();
    until(&mut stream, "{\"next\":true}").await;
}
