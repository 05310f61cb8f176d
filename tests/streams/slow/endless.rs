//! A provider that sends as fast as it is read, until the test ends it. It counts the sent bytes.

use crate::fixture::{chunk, usage_frame};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Bytes that may wait on the provider's side of a connection, in the kernel: few, so that a reader who stops is
/// noticed.
const SEND_BUFFER: u32 = 16 << 10;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
const TEXT_BYTES: usize = 1000;
/// Without length and chunks, so that the bytes read of a body are exactly the bytes sent.
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// The provider. Stops when dropped.
pub struct Endless {
    addr: SocketAddr,
    shared: Arc<Shared>,
    acceptor: AbortHandle,
}

struct Shared {
    begun: AtomicUsize,
    sent: AtomicU64,
    event: String,
    finish: watch::Sender<bool>,
}

impl Endless {
    /// Listens on a free port.
    pub fn start() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_send_buffer_size(SEND_BUFFER).expect("SO_SNDBUF");
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        let listener = socket.listen(BACKLOG).expect("a listener");
        let addr = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            begun: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            event: chunk(&"x".repeat(TEXT_BYTES)),
            finish: watch::Sender::new(false),
        });
        let serving = Arc::clone(&shared);
        let acceptor = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                tokio::spawn(async move { serve(connection, &shared).await });
            }
        });
        Self {
            addr,
            shared,
            acceptor: acceptor.abort_handle(),
        }
    }

    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// As `upstreams.NAME.base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    pub fn begun(&self) -> usize {
        self.shared.begun.load(Ordering::SeqCst)
    }

    /// Bytes of all heads and bodies that the kernel took.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::SeqCst)
    }

    /// Ends each stream after its present event, with the usage 9 + `OUTPUT` and `[DONE]`.
    pub fn finish(&self) {
        self.shared.finish.send_replace(true);
    }

    /// The usage that each stream reports in the end.
    pub const OUTPUT: u64 = 12;
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// Reads a request, and sends until the other side is gone or the streams are to end.
async fn serve(mut connection: TcpStream, shared: &Shared) {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if !matches!(connection.read_buf(&mut request).await, Ok(1..)) {
            return;
        }
    }
    if !send(&mut connection, shared, HEAD.as_bytes()).await {
        return;
    }
    shared.begun.fetch_add(1, Ordering::SeqCst);
    let finish = shared.finish.subscribe();
    while !*finish.borrow() {
        if !send(&mut connection, shared, shared.event.as_bytes()).await {
            return;
        }
    }
    let end = usage_frame(Endless::OUTPUT) + "data: [DONE]\n\n";
    send(&mut connection, shared, end.as_bytes()).await;
}

/// Returns true if a request with a body of a declared length has arrived completely.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = lengths
        .next()
        .and_then(|(_, value)| value.trim().parse().ok())
        .expect("a length");
    body.len() >= length
}

/// Sends all bytes. Returns false if the other side is gone.
async fn send(connection: &mut TcpStream, shared: &Shared, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match connection.write(bytes).await {
            Ok(written @ 1..) => {
                shared.sent.fetch_add(written as u64, Ordering::SeqCst);
                bytes = &bytes[written..];
            }
            _ => return false,
        }
    }
    true
}
