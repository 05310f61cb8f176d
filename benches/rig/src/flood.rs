//! Floods: deliberate attacks on a server, each bounded in connections and time.
//!
//! A flood keeps a number of connections open, or requests under way, until its end. It opens a connection that the
//! server closes again after a pause. It attacks loopback addresses only.

use crate::flood_http2;
use crate::wire;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Pause before a connection is opened again.
const AGAIN: Duration = Duration::from_millis(200);
/// Pause between two bytes of a slow request.
const DRIP: Duration = Duration::from_millis(500);
/// Longest wait for an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Size of the receive buffer for answers that are not read, in bytes.
const SMALL_BUFFER: u32 = 4096;
/// Requests on a connection that reads no answers.
const UNREAD_REQUESTS: usize = 500;
/// Size of the bodies sent with keys that are over their rate.
const LARGE_BODY_BYTES: usize = 1 << 20;
/// Source addresses of a flood from many addresses.
const ADDRESSES: u64 = 10_000;

/// Kind of a flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Flood {
    /// Nothing is sent.
    Idle,
    /// Nothing is sent after the first bytes of a TLS handshake.
    SilentTls,
    /// The head of a request is sent byte by byte.
    SlowHead,
    /// The body of a request with a valid key is sent byte by byte.
    SlowBody,
    /// Requests for the API's description are sent to the admin server, and no answer is read.
    UnreadAnswers,
    /// Requests for the edge's health are sent, and no answer is read.
    UnreadHealth,
    /// HTTP/2 requests are cancelled as soon as they are sent.
    RapidReset,
    /// An HTTP/2 head never ends.
    Continuation,
    /// HTTP/2 requests with keys that were never issued, whose answers have no room to be sent.
    UnreadStreams,
    /// The same after a request with a valid key.
    UnreadStreamsOfCaller,
    /// Calls with keys that were never issued.
    InventedKeys,
    /// Calls of 1 MiB with keys that are over their rate.
    OverRate,
    /// Sign-ins with a wrong password.
    SignIns,
}

/// Kind, target and size of a flood.
#[derive(Debug)]
pub struct Plan {
    /// Kind of attack.
    pub flood: Flood,
    /// Address to flood; loopback only.
    pub target: SocketAddr,
    /// Connections that are kept open.
    pub connections: usize,
    /// Whether they come from many addresses.
    pub spread: bool,
    /// The virtual keys to call with.
    pub keys: Vec<String>,
    /// End of the flood.
    pub end: Instant,
}

/// Counters of a flood.
#[derive(Debug, Default)]
pub struct FloodCounters {
    /// Connections that were made.
    pub opened: AtomicU64,
    /// Connections that could not be made, or that the server ended.
    pub ended: AtomicU64,
    /// Answers that were read.
    pub answers: AtomicU64,
}

/// Floods until `plan.end`.
///
/// # Errors
/// When the target is not a loopback address.
pub async fn run(plan: Plan) -> io::Result<Arc<FloodCounters>> {
    if !plan.target.ip().is_loopback() {
        return Err(io::Error::other("a flood goes to loopback only"));
    }
    let (plan, done) = (Arc::new(plan), Arc::new(FloodCounters::default()));
    let mut connections = JoinSet::new();
    for number in 0..plan.connections {
        connections.spawn(keep(Arc::clone(&plan), Arc::clone(&done), number));
    }
    let left = plan.end.saturating_duration_since(Instant::now());
    tokio::time::sleep(left).await;
    connections.shutdown().await;
    Ok(done)
}

/// Keeps connection `number` open.
async fn keep(plan: Arc<Plan>, done: Arc<FloodCounters>, number: usize) {
    for turn in 0_u64.. {
        if let Ok(stream) = connect(&plan, number as u64 + turn).await {
            done.opened.fetch_add(1, Ordering::Relaxed);
            // The result is ignored, since the server may close any of these connections.
            let _ = flood(&plan, &done, number, stream).await;
        }
        done.ended.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(AGAIN).await;
    }
}

async fn connect(plan: &Plan, number: u64) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if plan.spread {
        let address = u32::from(Ipv4Addr::new(127, 1, 0, 1)) + (number % ADDRESSES) as u32;
        socket.bind(SocketAddr::from((Ipv4Addr::from(address), 0)))?;
    }
    if matches!(plan.flood, Flood::UnreadAnswers | Flood::UnreadHealth) {
        socket.set_recv_buffer_size(SMALL_BUFFER)?;
    }
    socket.connect(plan.target).await
}

async fn flood(plan: &Plan, done: &FloodCounters, number: usize, mut stream: TcpStream) -> io::Result<()> {
    let host = plan.target.to_string();
    let key = plan
        .keys
        .get(number % plan.keys.len().max(1))
        .map_or("", String::as_str);
    match plan.flood {
        Flood::Idle => until_closed(&mut stream).await,
        Flood::SilentTls => {
            // The header of a handshake record without its content.
            stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00]).await?;
            until_closed(&mut stream).await
        }
        Flood::SlowHead => {
            let head = format!("POST {} HTTP/1.1\r\nHost: {host}\r\nX-Slow: ", wire::PATH);
            drip(&mut stream, head.as_bytes()).await
        }
        Flood::SlowBody => {
            let body = wire::chat_body(wire::REQUEST_BODY_BYTES);
            let request = wire::chat_request(&host, key, &format!("flood-{number}"), &body);
            let head = request.len() - body.len();
            drip(&mut stream, &request[..head]).await
        }
        Flood::UnreadAnswers => unread(&mut stream, &host, "/openapi.json").await,
        Flood::UnreadHealth => unread(&mut stream, &host, "/v1/health").await,
        Flood::RapidReset => flood_http2::rapid_reset(&mut stream).await,
        Flood::Continuation => flood_http2::continuation(&mut stream).await,
        Flood::UnreadStreams => flood_http2::unread(&mut stream, None).await,
        Flood::UnreadStreamsOfCaller => flood_http2::unread(&mut stream, Some(key)).await,
        Flood::InventedKeys => {
            let body = wire::chat_body(wire::REQUEST_BODY_BYTES);
            let key = format!("vk_live_{number:064x}");
            answers(
                &mut stream,
                &wire::chat_request(&host, &key, "flood", &body),
                done,
            )
            .await
        }
        Flood::OverRate => {
            let body = wire::chat_body(LARGE_BODY_BYTES);
            answers(&mut stream, &wire::chat_request(&host, key, "flood", &body), done).await
        }
        Flood::SignIns => {
            let body = format!(r#"{{"email":"nobody-{number}@example.com","password":"not the password"}}"#);
            let request = format!(
                "POST /api/user/login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            answers(&mut stream, request.as_bytes(), done).await
        }
    }
}

/// Sends [`UNREAD_REQUESTS`] requests at once, and reads nothing.
async fn unread(stream: &mut TcpStream, host: &str, path: &str) -> io::Result<()> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream
        .write_all(request.repeat(UNREAD_REQUESTS).as_bytes())
        .await?;
    std::future::pending().await
}

async fn until_closed(stream: &mut TcpStream) -> io::Result<()> {
    let mut some = [0; 512];
    while stream.read(&mut some).await? > 0 {}
    Ok(())
}

/// Sends `start`, then a byte every [`DRIP`].
async fn drip(stream: &mut TcpStream, start: &[u8]) -> io::Result<()> {
    stream.write_all(start).await?;
    loop {
        tokio::time::sleep(DRIP).await;
        stream.write_all(b" ").await?;
    }
}

/// Sends the request again and again, and reads each answer.
async fn answers(stream: &mut TcpStream, request: &[u8], done: &FloodCounters) -> io::Result<()> {
    let mut buffer = vec![0; wire::PIECE_BYTES];
    loop {
        // The server may answer and close before it has read all of it.
        let sent = stream.write_all(request).await;
        let mut filled = 0;
        let length = loop {
            let read = tokio::time::timeout(ANSWER_WAIT, stream.read(&mut buffer[filled..])).await??;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            match wire::message_length(&buffer[..filled]) {
                Ok(Some(length)) if length <= filled => break length,
                Ok(_) if filled < buffer.len() => {}
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        };
        done.answers.fetch_add(1, Ordering::Relaxed);
        sent?;
        if wire::closes(&buffer[..length]) {
            return Ok(());
        }
    }
}
