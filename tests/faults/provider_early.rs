//! A provider that answers, or closes, before it has read the request: its answer passes, and is charged as if it
//! had read everything (specification "Proxy spend ledger").

use crate::fixture::{ACTUAL, Fixture, Setup};
use harness::{EventStream, Reply, eventually};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// More than the buffers of both machines hold: the request cannot be sent whole to a provider that does not read it.
const LONG: usize = 16 << 20;
/// Far below `upstream.timeout_ms`: nothing waits for that time-out.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Behaviour of the provider once it has the head of a request.
#[derive(Clone, Copy)]
enum AfterHead {
    /// Sends this and stays connected without reading.
    Stay(&'static str),
    /// Sends this and closes, which resets the connection, since bytes are unread.
    Close(&'static str),
    /// Sends this, reads the whole request, and gives the usual answer.
    GoOn(&'static str),
}

const REFUSED: &str = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}";

/// Takes one connection after another; each is one request.
async fn provide(listener: TcpListener, then: AfterHead) {
    let mut kept = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut received = Vec::new();
        while !received.windows(4).any(|end| end == b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0, "a whole head");
        }
        let (AfterHead::Stay(said) | AfterHead::Close(said) | AfterHead::GoOn(said)) = then;
        stream.write_all(said.as_bytes()).await.unwrap();
        match then {
            AfterHead::Stay(_) => kept.push(stream),
            AfterHead::Close(_) => drop(stream),
            AfterHead::GoOn(_) => go_on(stream, received).await,
        }
    }
}

async fn go_on(mut stream: TcpStream, received: Vec<u8>) {
    // The edge reads the answer while it cannot send.
    tokio::time::sleep(Duration::from_millis(300)).await;
    read_rest(&mut stream, received).await;
    let usual = json!({ "usage": { "prompt_tokens": 9, "completion_tokens": 12 } }).to_string();
    let usual = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{usual}",
        usual.len()
    );
    stream.write_all(usual.as_bytes()).await.unwrap();
}

/// Reads the request to its end.
async fn read_rest(stream: &mut TcpStream, mut received: Vec<u8>) {
    let head = String::from_utf8_lossy(&received).to_lowercase();
    let (head, _) = head.split_once("\r\n\r\n").expect("a head");
    let mut lengths = head
        .lines()
        .filter_map(|line| line.strip_prefix("content-length: "));
    let length: usize = lengths.next().expect("a length").parse().expect("a number");
    while received.len() < head.len() + 4 + length {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0, "a whole body");
    }
}

/// An event as a chunk of the transfer encoding.
fn chunk(event: &serde_json::Value) -> String {
    let event = format!("data: {event}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

/// The answer to a call of [`LONG`] bytes, which must come at once.
async fn long_call(then: AfterHead) -> (Fixture, Reply) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(provide(listener, then));
    let fixture = Setup::default().env("UPSTREAM__BASE_URL", url).start().await;
    let since = Instant::now();
    let reply = call_of(&fixture, LONG).await;
    assert!(since.elapsed() < AT_ONCE, "{reply:?}");
    (fixture, reply)
}

/// The answer to a call whose prompt has this length.
async fn call_of(fixture: &Fixture, length: usize) -> Reply {
    let prompt = "x".repeat(length);
    let body = format!(
        r#"{{"model":"gpt-4o-mini","max_tokens":100,"messages":[{{"role":"user","content":"{prompt}"}}]}}"#
    );
    let caller = fixture.edge.caller(&fixture.key);
    let json = [("content-type", "application/json")];
    caller.send("POST", "/v1/chat/completions", &json, body).await
}

#[tokio::test]
async fn a_refusal_before_the_whole_request_is_passed_on_and_costs_nothing() {
    for then in [AfterHead::Stay(REFUSED), AfterHead::Close(REFUSED)] {
        let (fixture, reply) = long_call(then).await;
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (429, "{}"),
            "{}",
            fixture.edge.logs()
        );
        assert_eq!(reply.header("x-service-decision"), Some("approved"));
        assert_eq!(fixture.charged(), [0; 3]);
        assert_eq!(fixture.open_holds(), 0);
    }
}

#[tokio::test]
async fn an_interim_answer_does_not_end_the_sending() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let (fixture, reply) = long_call(AfterHead::GoOn(hints)).await;
    assert_eq!(reply.status, 200, "{reply:?}\n{}", fixture.edge.logs());
    assert_eq!(fixture.charged(), [ACTUAL; 3]);
}

#[tokio::test]
async fn a_provider_that_closes_before_or_within_an_answer_has_not_answered() {
    // Without a length the end of the connection is that of the answer, unless it is a reset.
    let cut = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"choices\":[";
    for then in [
        AfterHead::Close(""),
        AfterHead::Close("HTTP/1.1 429 Too"),
        AfterHead::Close(cut),
    ] {
        let (fixture, reply) = long_call(then).await;
        assert_eq!(reply.error_code(), "upstream_unreachable", "{reply:?}");
        assert_ne!(fixture.charged(), [0; 3], "it may have done the work");
        assert_eq!(fixture.open_holds(), 0);
    }
}

/// Sends an event before it reads the request. When the caller has the event, sends the rest of the stream: after the
/// request if `reads`, else at once.
async fn stream_early(listener: TcpListener, gate: Arc<Notify>, reads: bool) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut received = Vec::new();
    while !received.windows(4).any(|end| end == b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0, "a whole head");
    }
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    let first = json!({ "choices": [{ "index": 0, "delta": { "content": "early" } }] });
    stream
        .write_all((head + &chunk(&first)).as_bytes())
        .await
        .unwrap();
    gate.notified().await;
    if reads {
        read_rest(&mut stream, received).await;
    }
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21 });
    let last = chunk(&json!({ "choices": [], "usage": usage }));
    stream
        .write_all((last + "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n").as_bytes())
        .await
        .unwrap();
    // The edge sends no more of the request after the answer.
    while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
}

/// A stream that begins before the provider has the whole request passes as it comes, and the rest of the request is
/// sent meanwhile. What a provider does not take within `upstream.timeout_ms` is dropped, and the stream goes on.
#[tokio::test]
async fn a_stream_before_the_whole_request_passes_as_it_comes() {
    for reads in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let gate = Arc::new(Notify::new());
        let provider = tokio::spawn(stream_early(listener, Arc::clone(&gate), reads));
        let timeout_ms = if reads { 100_000 } else { 1_000 };
        let fixture = Setup::default()
            .env("UPSTREAM__BASE_URL", url)
            .env("UPSTREAM__TIMEOUT_MS", timeout_ms)
            .env("PROXY__STREAMING", "true")
            .env("PROXY__STREAM_FIRST_BYTE_MS", "20000")
            .start()
            .await;
        let prompt = "x".repeat(LONG);
        let body = json!({ "model": "gpt-4o-mini", "max_tokens": 100, "stream": true,
            "messages": [{ "content": prompt, "role": "user" }] });
        let path = "/v1/chat/completions";
        let mut stream = EventStream::open(fixture.edge.addr(), path, &fixture.key, "", body).await;
        assert_eq!(stream.status(), 200, "{}", stream.head);
        stream.until("early").await;
        if !reads {
            eventually("the release of the unsent memory", AT_ONCE, async || {
                (fixture.metric("tollgate_proxy_body_memory_bytes") == 0).then_some(())
            })
            .await;
        }
        gate.notify_one();
        assert!(stream.rest().await.ends_with("data: [DONE]\n\n"));
        fixture.bot.settled_within(AT_ONCE).await;
        assert_eq!(fixture.charged(), [ACTUAL; 3]);
        provider.await.unwrap();
        assert!(
            !fixture.edge.logs().contains("panicked"),
            "{}",
            fixture.edge.logs()
        );
    }
}

const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 52\r\n\r\n\
                    {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":12}}";

/// Of the first connection, reads a head, sends an answer that keeps the connection, and reads nothing more. Answers on
/// the others as usual.
async fn stop_reading(listener: TcpListener, said: &'static str) {
    let (mut first, _) = listener.accept().await.unwrap();
    let mut received = Vec::new();
    while !received.windows(4).any(|end| end == b"\r\n\r\n") {
        assert_ne!(first.read_buf(&mut received).await.unwrap(), 0, "a whole head");
    }
    first.write_all(said.as_bytes()).await.unwrap();
    provide(listener, AfterHead::GoOn("")).await;
}

/// Returns whether the edge can read how much of a request is unsent: Pingora can from Linux 6.2 on.
fn unsent_bytes_are_known() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(2))
}

/// The whole request fits into the buffers of both machines, or of the provider's: nothing waits to be sent when the
/// answer comes. The next call would wait behind the rest of the request until it is late, and stay charged.
#[tokio::test]
async fn a_connection_with_an_unread_request_is_not_used_again() {
    for (said, status, length) in [
        (REFUSED, 429, 100_000),
        (REFUSED, 429, 1_000_000),
        (DONE, 200, 1_000_000),
    ] {
        if status == 200 && !unsent_bytes_are_known() {
            continue;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let provider = tokio::spawn(stop_reading(listener, said));
        let fixture = Setup::default()
            .env("UPSTREAM__BASE_URL", url)
            .env("UPSTREAM__TIMEOUT_MS", 5_000)
            .start()
            .await;
        let first = call_of(&fixture, length).await;
        assert_eq!(first.status, status, "{first:?}");
        let next = call_of(&fixture, 1).await;
        assert_eq!(next.status, 200, "after {status} to {length} bytes: {next:?}");
        provider.abort();
    }
}
