//! Reading and recording a request, byte for byte.

use serde_json::Value;
use std::time::Instant;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// Longest request that is read.
const REQUEST_MAX: usize = 64 << 20;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its number by arrival, from 0.
    pub number: usize,
    /// HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Request line and header lines as they arrived.
    pub head: String,
    /// The exact bytes of the body, unchunked when it came in chunks.
    pub body: Vec<u8>,
    /// When it was complete.
    pub at: Instant,
}

impl Recorded {
    /// The value of a header; panics if the header occurs twice.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let values = self.header_all(name);
        assert!(values.len() < 2, "two headers `{name}`: {}", self.head);
        values.first().copied()
    }

    /// All values of a header.
    pub fn header_all(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let named = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim()).collect()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Reads one request; `None` if the connection ends or the bytes are not HTTP. `arrived` returns its number.
pub(super) async fn read(
    stream: &mut TcpStream,
    received: &mut Vec<u8>,
    arrived: impl FnOnce() -> usize,
) -> Option<Recorded> {
    let end = find(stream, received, b"\r\n\r\n").await?;
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    received.drain(..end + 4);
    let number = arrived();
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut request = Recorded {
        number,
        method,
        path,
        head,
        body: Vec::new(),
        at: Instant::now(),
    };
    let length = request
        .header("content-length")
        .and_then(|text| text.parse().ok());
    let chunked = request
        .header("transfer-encoding")
        .is_some_and(|text| text.eq_ignore_ascii_case("chunked"));
    request.body = if chunked {
        read_chunks(stream, received).await?
    } else {
        take(stream, received, length.unwrap_or(0)).await?
    };
    request.at = Instant::now();
    Some(request)
}

async fn read_chunks(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = find(stream, received, b"\r\n").await?;
        let size = String::from_utf8_lossy(&received[..end]).into_owned();
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        received.drain(..end + 2);
        body.extend(take(stream, received, size).await?);
        take(stream, received, 2).await?;
        if size == 0 {
            return Some(body);
        }
    }
}

async fn take(stream: &mut TcpStream, received: &mut Vec<u8>, length: usize) -> Option<Vec<u8>> {
    while received.len() < length {
        fill(stream, received).await?;
    }
    Some(received.drain(..length).collect())
}

async fn find(stream: &mut TcpStream, received: &mut Vec<u8>, needle: &[u8]) -> Option<usize> {
    loop {
        if let Some(at) = received.windows(needle.len()).position(|window| window == needle) {
            return Some(at);
        }
        fill(stream, received).await?;
    }
}

async fn fill(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<()> {
    assert!(received.len() <= REQUEST_MAX, "a request without end");
    matches!(stream.read_buf(received).await, Ok(1..)).then_some(())
}
