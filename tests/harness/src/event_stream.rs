//! A client that reads a streamed answer piece by piece.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for the next bytes, on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// An answer over HTTP/1.1 whose head was read. The test reads the body step by step.
#[derive(Debug)]
pub struct EventStream {
    connection: TcpStream,
    /// Status line and headers.
    pub head: String,
    /// Bytes of the chunked body that were received and not decoded yet.
    raw: Vec<u8>,
    /// The body so far, up to the last whole character.
    pub body: String,
    /// Bytes of an incomplete character at the end.
    partial: Vec<u8>,
    is_at_end: bool,
}

impl EventStream {
    /// Sends a call and reads the head of its answer.
    /// `extra_head`: further header lines, each with its `\r\n`.
    ///
    /// # Panics
    /// If no answer arrives.
    pub async fn open(edge: SocketAddr, path: &str, key: &str, extra_head: &str, body: Value) -> Self {
        let mut connection = TcpStream::connect(edge).await.expect("a connection");
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{extra_head}\r\n{body}",
            body.len()
        );
        connection
            .write_all(request.as_bytes())
            .await
            .expect("it is read");
        let mut stream = Self {
            connection,
            head: String::new(),
            raw: Vec::new(),
            body: String::new(),
            partial: Vec::new(),
            is_at_end: false,
        };
        let end = loop {
            if let Some(at) = find(&stream.raw, b"\r\n\r\n") {
                break at;
            }
            assert!(
                stream.fill().await,
                "a head: {:?}",
                String::from_utf8_lossy(&stream.raw)
            );
        };
        stream.head = String::from_utf8_lossy(&stream.raw[..end]).into_owned();
        stream.raw.drain(..end + 4);
        stream
    }

    /// Returns the HTTP status.
    ///
    /// # Panics
    /// If the status is not a number.
    pub fn status(&self) -> u16 {
        self.head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a status")
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut values = lines.filter_map(|line| line.split_once(": "));
        values
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Reads until the body contains this text.
    ///
    /// # Panics
    /// If the body ends before.
    pub async fn until(&mut self, text: &str) {
        self.decode();
        while !self.body.contains(text) {
            assert!(!self.is_at_end && self.fill().await, "{text} in {}", self.body);
            self.decode();
        }
    }

    /// Reads the body to its end. Returns it.
    ///
    /// # Panics
    /// If the connection ends before.
    pub async fn rest(&mut self) -> &str {
        self.decode();
        while !self.is_at_end {
            assert!(self.fill().await, "the end: {}", self.body);
            self.decode();
        }
        &self.body
    }

    /// Reads once. Returns false at the end of the body.
    ///
    /// # Panics
    /// If the connection ends before.
    pub async fn more(&mut self) -> bool {
        self.decode();
        if !self.is_at_end {
            assert!(self.fill().await, "the end: {}", self.body);
            self.decode();
        }
        !self.is_at_end
    }

    /// Reads the rest of the body. Returns whether it is complete, not broken off.
    pub async fn ends_whole(&mut self) -> bool {
        self.decode();
        while !self.is_at_end && self.fill().await {
            self.decode();
        }
        self.is_at_end
    }

    /// The JSON body of an answer that is not chunked.
    ///
    /// # Panics
    /// If the connection ends before, or it is not JSON.
    pub async fn whole(&mut self) -> Value {
        serde_json::from_str(&self.whole_text().await).expect("JSON")
    }

    /// The body of an answer that is not chunked.
    ///
    /// # Panics
    /// If the connection ends before, or it is not UTF-8.
    pub async fn whole_text(&mut self) -> String {
        let length: usize = self
            .header("content-length")
            .and_then(|text| text.parse().ok())
            .expect("a length");
        while self.raw.len() < length {
            assert!(self.fill().await);
        }
        String::from_utf8(self.raw[..length].to_vec()).expect("UTF-8")
    }

    /// Sends bytes after the request.
    ///
    /// # Panics
    /// If the connection is closed.
    pub async fn send(&mut self, bytes: &str) {
        let sent = self.connection.write_all(bytes.as_bytes()).await;
        sent.expect("an open connection");
    }

    /// Returns true if the edge closes the connection after the body, without a reset and without another byte.
    pub async fn is_closed(&mut self) -> bool {
        let read = timeout(PATIENCE, self.connection.read_buf(&mut self.raw)).await;
        matches!(read, Ok(Ok(0))) && self.raw.is_empty()
    }

    /// Everything that the edge sends after the body until it closes the connection.
    pub async fn behind(&mut self) -> String {
        while self.fill().await {}
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// Closes the connection with a reset.
    ///
    /// # Panics
    /// If the socket option cannot be set.
    pub fn reset(self) {
        self.connection.set_zero_linger().expect("SO_LINGER");
    }

    async fn fill(&mut self) -> bool {
        let read = timeout(PATIENCE, self.connection.read_buf(&mut self.raw)).await;
        read.expect("something within the time")
            .is_ok_and(|read| read > 0)
    }

    fn decode(&mut self) {
        while !self.is_at_end
            && let Some(at) = find(&self.raw, b"\r\n")
        {
            let size = String::from_utf8_lossy(&self.raw[..at]).into_owned();
            let size = usize::from_str_radix(&size, 16).expect("the size of a chunk");
            let end = at + 2 + size + 2;
            if self.raw.len() < end {
                return;
            }
            self.partial.extend_from_slice(&self.raw[at + 2..at + 2 + size]);
            let valid = match std::str::from_utf8(&self.partial) {
                Ok(text) => text.len(),
                Err(error) => error.valid_up_to(),
            };
            let whole: Vec<u8> = self.partial.drain(..valid).collect();
            self.body.push_str(&String::from_utf8_lossy(&whole));
            self.raw.drain(..end);
            self.is_at_end = size == 0;
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
