//! Providers that never pause, and whose bytes take time but hold nothing for the caller: their answers end by the
//! documented bounds, and calls of others are served meanwhile. How long these wait is bounded by the turns at reading,
//! which unit tests count.

use crate::fixture::{Actor, Fixture, HELD, SOON, body, chunk, open_cap};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use harness::Answer;
use serde_json::json;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Length of a block that is sent again and again, in bytes.
const BLOCK: usize = 64 << 10;
/// `proxy.stream_total_ms`
const TOTAL: Duration = Duration::from_secs(3);
/// `upstream.max_response_bytes`
const RESPONSE_MAX: usize = 2 << 20;

/// A provider that answers each request with the same beginning, and then with blocks until the edge closes.
struct Provider {
    addr: SocketAddr,
    acceptor: AbortHandle,
}

impl Provider {
    async fn start(begin: Vec<u8>, block: &[u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("its address");
        let (begin, block) = (Arc::new(begin), Arc::new(block.repeat(BLOCK / block.len())));
        let acceptor = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (begin, block) = (Arc::clone(&begin), Arc::clone(&block));
                tokio::spawn(async move { serve(connection, &begin, &block).await });
            }
        });
        Self {
            addr,
            acceptor: acceptor.abort_handle(),
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// Answers the one request of a connection.
async fn serve(mut connection: TcpStream, begin: &[u8], block: &[u8]) {
    let mut request = Vec::new();
    while !String::from_utf8_lossy(&request).contains("\r\n\r\n") {
        if !matches!(connection.read_buf(&mut request).await, Ok(1..)) {
            return;
        }
    }
    let mut sent = connection.write_all(begin).await;
    while sent.is_ok() {
        sent = connection.write_all(block).await;
    }
}

/// The head of an answer that ends with its connection.
fn head(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{headers}\r\n").into_bytes()
}

const EVENTS: &str = "Content-Type: text/event-stream\r\n";

/// An edge with one thread, whose calls of `nano` go to the provider.
struct Attacked {
    fixture: Fixture,
    actor: Actor,
    other: Actor,
    _provider: Provider,
}

impl Attacked {
    async fn by(provider: Provider) -> Self {
        let url = format!("http://{}/v1", provider.addr);
        let fixture = Fixture::with(|options| {
            options
                .env("TOLLGATE_PROXY__THREADS", "1")
                .env("TOLLGATE_PROXY__STREAM_TOTAL_MS", TOTAL.as_millis().to_string())
                .env("TOLLGATE_UPSTREAMS__GREEDY__BASE_URL", url)
                .env("TOLLGATE_UPSTREAMS__GREEDY__MODELS", "nano")
                .env("TOLLGATE_UPSTREAMS__GREEDY__PRICE_PREFIX", "")
                .env("TOLLGATE_UPSTREAM__MAX_RESPONSE_BYTES", RESPONSE_MAX.to_string())
        })
        .await;
        fixture.upstream.set(|_request| Answer::chat(9, 12));
        let [actor, other] = [
            fixture.actor("enterprise", open_cap()).await,
            fixture.actor("enterprise", open_cap()).await,
        ];
        let key = "sk-test-greedy-key";
        actor.agent.provider_key_for("greedy", key).await;
        Self {
            fixture,
            actor,
            other,
            _provider: provider,
        }
    }

    /// Waits for `answer` while calls of the other account are made, which the same thread of the edge serves.
    async fn meanwhile<T: Send + 'static>(&self, answer: impl Future<Output = T> + Send + 'static) -> T {
        let (answer, began) = (tokio::spawn(answer), Instant::now());
        while !answer.is_finished() {
            let reply = self.other.caller.chat(plain(json!({ "model": "plain" }))).await;
            assert_eq!(reply.status, 200, "{reply:?}");
            assert!(began.elapsed() < SOON, "the answer does not end");
        }
        answer.await.expect("an answer")
    }

    /// Streams a call to its end. Returns the events.
    async fn stream(&self) -> String {
        let mut stream = self.fixture.open(&self.actor, json!({})).await;
        assert_eq!(stream.status(), 200, "{}", stream.head);
        self.meanwhile(async move { stream.rest().await.to_owned() })
            .await
    }
}

/// The body of a call without a stream.
fn plain(more: serde_json::Value) -> serde_json::Value {
    let mut body = body(more);
    body["stream"] = json!(false);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_bytes_of_nothing_end_with_the_deadline() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(chunk("one").as_bytes()).unwrap();
    let no_member = GzEncoder::new(Vec::new(), Compression::fast());
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(chunk("one").as_bytes()).unwrap();
    zlib.flush().unwrap();
    let empty_block = vec![0, 0, 0, 0xff, 0xff];
    for (coding, first, nothing) in [
        ("gzip", gzip.finish().unwrap(), no_member.finish().unwrap()),
        ("deflate", zlib.get_ref().clone(), empty_block),
    ] {
        let headers = format!("{EVENTS}Content-Encoding: {coding}\r\n");
        let provider = Provider::start([head(&headers), first].concat(), &nothing).await;
        let attacked = Attacked::by(provider).await;
        let events = attacked.stream().await;
        assert!(events.starts_with(&chunk("one")), "{coding}: {events}");
        assert!(events.contains("upstream_timeout"), "{coding}: {events}");
        assert_eq!(attacked.actor.settled().await, HELD);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_one_by_one_after_the_last_event_hold_up_nobody() {
    let events = [chunk("one"), "data: [DONE]\n\n".to_owned()].concat();
    let begin = format!("{:x}\r\n{events}\r\n", events.len());
    let headers = format!("{EVENTS}Transfer-Encoding: chunked\r\n");
    let provider = Provider::start([head(&headers), begin.into()].concat(), b"1\r\n\n\r\n").await;
    let attacked = Attacked::by(provider).await;
    let passed = attacked.stream().await;
    assert!(passed.starts_with(&events), "{passed}");
    assert_eq!(attacked.actor.settled().await, HELD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_of_one_byte_after_the_other_holds_up_nobody() {
    let headers = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    let provider = Provider::start(head(headers), b"1\r\n \r\n").await;
    let attacked = Attacked::by(provider).await;
    let caller = attacked.actor.caller.clone();
    let call = async move { caller.chat(plain(json!({}))).await };
    let reply = attacked.meanwhile(call).await;
    assert_eq!(reply.status, 502, "{reply:?}");
    assert_eq!(attacked.actor.settled().await, HELD);
}
