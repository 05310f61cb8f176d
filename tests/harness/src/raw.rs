//! A client that sends raw bytes: malformed requests, partial bodies, disconnects.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest answer that is read.
const ANSWER_MAX: usize = 256 << 20;

/// A plain TCP connection.
#[derive(Debug)]
pub struct RawClient {
    stream: TcpStream,
    received: Vec<u8>,
}

/// One answer: head and body as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawReply {
    /// HTTP status.
    pub status: u16,
    /// Status line and header lines.
    pub head: String,
    /// The body, unchunked when it came in chunks.
    pub body: Vec<u8>,
}

impl RawClient {
    /// Connects.
    pub async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.expect("a connection");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        Self {
            stream,
            received: Vec::new(),
        }
    }

    /// Connects; `None` if that fails.
    pub async fn try_connect(addr: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(addr).await.ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self {
            stream,
            received: Vec::new(),
        })
    }

    /// Sends bytes as they are; false when the other side has closed.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Sends a whole chat-completions request with these extra header lines (each with its `\r\n`).
    pub async fn send_chat(&mut self, key: &str, extra_head: &str, body: &[u8]) -> bool {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{extra_head}\r\n",
            body.len()
        );
        self.send(head).await && self.send(body).await
    }

    /// Closes the sending direction. The answer can still be read.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Closes the connection with a reset.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("SO_LINGER");
    }

    /// Everything until the other side closes or `within` is over.
    pub async fn read_to_end(&mut self, within: Duration) -> Vec<u8> {
        let _ = tokio::time::timeout(within, async { while self.fill().await {} }).await;
        std::mem::take(&mut self.received)
    }

    /// One answer; `None` when the other side closes, breaks off or takes longer than `within`.
    pub async fn reply(&mut self, within: Duration) -> Option<RawReply> {
        tokio::time::timeout(within, self.read_reply())
            .await
            .ok()
            .flatten()
    }

    /// Returns true if the peer closes within this time and sends nothing more.
    pub async fn closed(&mut self, within: Duration) -> bool {
        matches!(tokio::time::timeout(within, self.fill()).await, Ok(false)) && self.received.is_empty()
    }

    async fn read_reply(&mut self) -> Option<RawReply> {
        let end = self.find(b"\r\n\r\n", 0).await?;
        let head = String::from_utf8_lossy(&self.received[..end]).into_owned();
        let status: u16 = head.split(' ').nth(1)?.parse().ok()?;
        let has_body = status >= 200 && status != 204 && status != 304;
        let chunked =
            header(&head, "transfer-encoding").is_some_and(|text| text.eq_ignore_ascii_case("chunked"));
        let length = header(&head, "content-length").and_then(|text| text.parse::<usize>().ok());
        // The whole answer must be there before any of it is consumed: a caller may try again after a timeout.
        let whole = end + 4 + length.filter(|_| has_body && !chunked).unwrap_or(0);
        while self.received.len() < whole {
            if !self.fill().await {
                return None;
            }
        }
        self.received.drain(..end + 4);
        let body = match length {
            _ if chunked => self.read_chunks().await?,
            _ if !has_body => Vec::new(),
            Some(length) => self.take(length).await?,
            None => self.read_to_close().await,
        };
        Some(RawReply { status, head, body })
    }

    async fn read_to_close(&mut self) -> Vec<u8> {
        while self.fill().await {}
        std::mem::take(&mut self.received)
    }

    async fn read_chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = self.find(b"\r\n", 0).await?;
            let size = String::from_utf8_lossy(&self.received[..end]).into_owned();
            let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
            self.received.drain(..end + 2);
            let chunk = self.take(size).await?;
            self.take(2).await?;
            if size == 0 {
                return Some(body);
            }
            body.extend(chunk);
        }
    }

    async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.received.len() < length {
            if !self.fill().await {
                return None;
            }
        }
        Some(self.received.drain(..length).collect())
    }

    async fn find(&mut self, needle: &[u8], from: usize) -> Option<usize> {
        loop {
            let found = self.received[from..]
                .windows(needle.len())
                .position(|window| window == needle);
            if let Some(at) = found {
                return Some(from + at);
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// Reads some more; false at the end.
    async fn fill(&mut self) -> bool {
        assert!(self.received.len() <= ANSWER_MAX, "an answer without end");
        matches!(self.stream.read_buf(&mut self.received).await, Ok(count) if count > 0)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

impl RawReply {
    /// A header of the answer.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
