//! Callers that read one byte a second, from several addresses, with as little room in their kernel as it allows.

use crate::fixture::body;
use serde_json::json;
use socket2::SockRef;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Interval between two bytes that a caller reads.
const A_BYTE: Duration = Duration::from_secs(1);
/// Bytes that may wait on the caller's side of a connection, in the kernel.
const RECEIVE_BUFFER: u32 = 2048;
/// The segments of an Ethernet. With those of the loopback device the kernel keeps megabytes on the edge's side.
const SEGMENT: u32 = 1460;

/// Callers with streams that have begun.
pub struct SlowCallers {
    callers: Vec<JoinHandle<TcpStream>>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

#[derive(Default)]
struct Shared {
    /// Bytes that all callers read.
    read: AtomicU64,
    /// Callers that have read two bytes, one second apart.
    have_read_twice: AtomicU64,
}

impl SlowCallers {
    pub fn new() -> Self {
        Self {
            callers: Vec::new(),
            shared: Arc::default(),
            stop: watch::Sender::new(false),
        }
    }

    /// Makes one more call. Its caller begins to read.
    pub async fn call(&mut self, edge: SocketAddr, from: Ipv4Addr, key: &str) {
        let mut connection = connect(edge, from).await;
        let body = body(json!({})).to_string();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection
            .write_all(request.as_bytes())
            .await
            .expect("it is read");
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.subscribe());
        self.callers.push(tokio::spawn(read(connection, shared, stop)));
    }

    /// Bytes that all callers read so far.
    pub fn have_read(&self) -> u64 {
        self.shared.read.load(Ordering::SeqCst)
    }

    /// Returns true if each caller has read two bytes.
    pub fn all_read(&self) -> bool {
        self.shared.have_read_twice.load(Ordering::SeqCst) == self.callers.len() as u64
    }

    /// Ends the slow reading: every second caller leaves with a reset, the others read to the end. Returns the number
    /// of callers that got a whole stream.
    pub async fn end(self) -> usize {
        self.stop.send_replace(true);
        let mut staying = Vec::new();
        for (at, caller) in self.callers.into_iter().enumerate() {
            let connection = caller.await.expect("a caller who was not disconnected");
            match at % 2 {
                0 => connection.set_zero_linger().expect("SO_LINGER"),
                _ => staying.push(tokio::spawn(read_on(connection))),
            }
        }
        let mut whole = 0;
        for caller in staying {
            whole += usize::from(caller.await.expect("a caller"));
        }
        whole
    }
}

async fn connect(edge: SocketAddr, from: Ipv4Addr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(RECEIVE_BUFFER).expect("SO_RCVBUF");
    SockRef::from(&socket).set_tcp_mss(SEGMENT).expect("TCP_MAXSEG");
    socket.bind((from, 0).into()).expect("a port");
    socket.connect(edge).await.expect("a connection")
}

async fn read(mut connection: TcpStream, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) -> TcpStream {
    let mut own = 0;
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return connection,
            () = tokio::time::sleep(A_BYTE) => {}
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return connection,
            read = connection.read_u8() => drop(read.expect("a byte: the stream goes on")),
        }
        own += 1;
        shared.read.fetch_add(1, Ordering::SeqCst);
        if own == 2 {
            shared.have_read_twice.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Reads to the end. Returns whether the stream is whole.
async fn read_on(mut connection: TcpStream) -> bool {
    let mut end = Vec::new();
    while matches!(connection.read_buf(&mut end).await, Ok(1..)) {
        // Only its last bytes are checked.
        end.drain(..end.len().saturating_sub(256));
    }
    String::from_utf8_lossy(&end).contains("data: [DONE]\n\n")
}
