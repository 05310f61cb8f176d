//! Sending the one request and reading the whole answer, under one deadline, without retries.

use super::headers::ForwardList;
use super::idle::{Connected, Idle, SWEEP_EVERY};
use super::target::{RESOLVE_EVERY, Target};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use nix::errno::Errno;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::protocols::Stream;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use settings::UpstreamSettings;
use std::error::Error;
use std::future::{pending, poll_fn};
use std::io::{self, Cursor};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::{Instant, interval, timeout_at};

/// Interim (1xx) answers that are skipped before the real one.
const INTERIM_MAX: usize = 8;
/// Bodies up to this size, in bytes, are copied behind their head.
const JOINED_BODY: usize = 64 * 1024;
/// Bytes of an answer that are read while the request is still being sent, before both go on side by side.
const HEARD: usize = 512;
/// An account has one in so many of the connections at most, so that its slow calls leave some to others.
const ACCOUNT_PART: usize = 2;
/// Room between a connection that is read and written at once and the reader of its answer.
const DUPLEX: usize = 16 * 1024;

/// The way to the provider.
pub struct Upstream {
    connector: TransportConnector,
    idle: Idle,
    target: Target,
    timeout: Duration,
    max_response_bytes: usize,
    forward_list: ForwardList,
    /// Connections that may still be made.
    free: Arc<Semaphore>,
    account_calls_max: usize,
    /// Exchanges on a new connection, and on one that was there already.
    connected: [AtomicU64; 2],
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// The provider's whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers. Names come without their letter case, which HTTP does not know.
    pub headers: HeaderMap,
    /// The body, as sent.
    pub body: Bytes,
}

/// Why there is no answer. But for [`Failure::NotSent`] the provider may have done the work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nothing was sent, for a reason on this machine: no descriptor, no memory, no local port (decision D69).
    #[error("nothing could be sent to the provider: {0}")]
    NotSent(io::ErrorKind),
    /// Not reached, broken off, truncated, or not HTTP.
    #[error("the provider could not be reached or broke off: {0}")]
    Unreachable(&'static str),
    /// No whole answer in time.
    #[error("the provider gave no whole answer in time")]
    Timeout,
}

impl Upstream {
    /// The way to the provider in `settings`, with at most this many connections.
    ///
    /// # Errors
    /// One line that names the key.
    pub fn new(settings: &UpstreamSettings, connections_max: usize) -> Result<Self, String> {
        let target = Target::parse(&settings.base_url)?;
        // The connector's own pool stays empty.
        let mut options = ConnectorOptions::new(1);
        if !settings.ca_file.as_os_str().is_empty() {
            let path = settings.ca_file.display().to_string();
            std::fs::metadata(&settings.ca_file)
                .map_err(|error| format!("upstream.ca_file {path}: {error}"))?;
            options.ca_file = Some(path);
        }
        Ok(Self {
            connector: TransportConnector::new(Some(options)),
            idle: Idle::default(),
            target,
            timeout: Duration::from_millis(settings.timeout_ms),
            max_response_bytes: settings.max_response_bytes,
            free: Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS))),
            account_calls_max: (connections_max / ACCOUNT_PART).max(1),
            forward_list: ForwardList::parse(&settings.forward_headers)?,
            connected: Default::default(),
        })
    }

    /// The provider's host name.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.target.host
    }

    /// Where requests go.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// The most calls of one account that may be under way at once. A connection of HTTP/2 brings a hundred, and a caller who
    /// has gone stops none, so the bounds of connections do not bound them.
    #[must_use]
    pub const fn account_calls_max(&self) -> usize {
        self.account_calls_max
    }

    /// Request headers that reach the provider.
    #[must_use]
    pub const fn forward_list(&self) -> &ForwardList {
        &self.forward_list
    }

    /// Exchanges so far, on a new connection and on one that was there already.
    #[must_use]
    pub fn connected(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.connected[at].load(Ordering::Relaxed))
    }

    /// Resolves the provider's name once in a while, for ever.
    pub async fn follow_address(self: Arc<Self>) {
        let mut ticks = interval(RESOLVE_EVERY);
        loop {
            ticks.tick().await;
            self.target.resolve().await;
        }
    }

    /// Closes idle connections that must not be used any more, for ever.
    pub async fn keep_idle_fresh(self: Arc<Self>) {
        let mut ticks = interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.idle.sweep();
        }
    }

    /// Sends the request once and reads the answer. The body is let go of when it is sent, and with it what is held for it:
    /// the provider may take long.
    ///
    /// # Errors
    /// [`Failure`], after at most one request.
    pub async fn exchange(
        &self,
        headers: &HeaderMap,
        body: Bytes,
        held: impl Send,
    ) -> Result<Answer, Failure> {
        let deadline = Instant::now() + self.timeout;
        timeout_at(deadline, pin!(self.attempt(headers, body, held)))
            .await
            .unwrap_or(Err(Failure::Timeout))
    }

    async fn attempt(
        &self,
        headers: &HeaderMap,
        mut body: Bytes,
        held: impl Send,
    ) -> Result<Answer, Failure> {
        let failed = Failure::Unreachable;
        let peer = self.target.peer().ok_or(failed("its name does not resolve"))?;
        let idle = self.idle.take(&peer);
        self.connected[usize::from(idle.is_some())].fetch_add(1, Ordering::Relaxed);
        let Connected { mut stream, place } = match idle {
            Some(connected) => connected,
            None => {
                let place = Arc::clone(&self.free).try_acquire_owned();
                let place = place.map_err(|_none| Failure::NotSent(io::ErrorKind::ResourceBusy))?;
                // On the heap: it takes eight times the room of all else here, and most calls find a connection.
                let stream = Box::pin(self.connector.new_stream(&*peer)).await;
                let stream = stream.map_err(|error| not_connected(&error))?;
                Connected { stream, place }
            }
        };
        // A body of usual size goes out together with its head, in one system call instead of two.
        let joined = match body.len() <= JOINED_BODY {
            true => std::mem::take(&mut body),
            false => Bytes::new(),
        };
        let mut unsent = Cursor::new(wire(&self.target.path, headers, &joined)).chain(body);
        drop(joined);
        if let Sent::Interrupted(heard) = send(&mut stream, &mut unsent).await {
            // On the heap, as it is rare and needs much room.
            return Box::pin(self.interrupted(stream, (unsent, held), heard, &peer)).await;
        }
        drop((unsent, held));
        let mut session = HttpSession::new_with_options(stream, &*peer);
        let answer = self.read(&mut session).await?;
        session.respect_keepalive();
        if let Some(stream) = session.reuse().await {
            self.idle.keep(peer, Connected { stream, place });
        }
        Ok(answer)
    }

    /// Reads the answer of a provider that began to speak, or closed, before it had the whole request: it refuses what it
    /// was sent, which its answer tells. What is unsent goes on its way meanwhile, as the answer may be an interim one.
    async fn interrupted(
        &self,
        stream: Stream,
        (mut unsent, held): (impl Buf, impl Send),
        heard: Vec<u8>,
        peer: &HttpPeer,
    ) -> Result<Answer, Failure> {
        let (mut from, mut to) = tokio::io::split(stream);
        let (near, mut far) = tokio::io::duplex(DUPLEX);
        let sending = async move {
            drop(to.write_all_buf(&mut unsent).await);
            drop(to.flush().await);
            drop((unsent, held));
            pending().await
        };
        let hearing = async move {
            if far.write_all(&heard).await.is_ok() {
                drop(tokio::io::copy(&mut from, &mut far).await);
            }
            drop(far);
            pending().await
        };
        let mut session = HttpSession::new_with_options(Box::new(near), peer);
        tokio::select! {
            answer = self.read(&mut session) => answer,
            never = sending => never,
            never = hearing => never,
        }
    }

    /// The whole answer.
    async fn read(&self, session: &mut HttpSession) -> Result<Answer, Failure> {
        let (status, headers) = read_head(session).await?;
        let body = self.read_body(session, &headers).await?;
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    /// The whole body. An answer in one piece is passed on without a copy.
    async fn read_body(&self, session: &mut HttpSession, headers: &HeaderMap) -> Result<Bytes, Failure> {
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        let mut length = 0_usize;
        while let Some(piece) = session
            .read_body_bytes()
            .await
            .map_err(|error| lost("body", &error))?
        {
            length += piece.len();
            if length > self.max_response_bytes {
                return Err(Failure::Unreachable("its answer is too long"));
            }
            if first.is_empty() {
                first = piece;
            } else {
                if whole.is_empty() {
                    let declared = content_length(headers).unwrap_or(0).min(self.max_response_bytes);
                    whole.reserve(declared.max(length));
                    whole.extend_from_slice(&first);
                }
                whole.extend_from_slice(&piece);
            }
        }
        Ok(if whole.is_empty() { first } else { whole.freeze() })
    }
}

/// The request as it is sent, with the part of its body that goes together with its head. Names and values of a header map
/// hold nothing that could end a line.
fn wire(path: &str, headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    const LINES: [&[u8]; 4] = [b"POST ", b" HTTP/1.1\r\n", b": ", b"\r\n"];
    let [post, version, colon, end] = LINES;
    let lines: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + colon.len() + end.len())
        .sum();
    let ends = post.len() + path.len() + version.len() + end.len();
    let mut wire = Vec::with_capacity(ends + lines + body.len());
    for part in [post, path.as_bytes(), version] {
        wire.extend_from_slice(part);
    }
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), colon, value.as_bytes(), end] {
            wire.extend_from_slice(part);
        }
    }
    wire.extend_from_slice(end);
    wire.extend_from_slice(body);
    wire
}

/// How far the sending of a request came.
enum Sent {
    /// All of it is sent.
    Whole,
    /// Not all of it: the provider said this, or will take no more.
    Interrupted(Vec<u8>),
}

/// Sends what is `unsent`, as long as the provider is silent and takes it.
async fn send(stream: &mut Stream, unsent: &mut impl Buf) -> Sent {
    poll_fn(|context| {
        let sent = loop {
            let written = match unsent.has_remaining() {
                true => Pin::new(&mut *stream).poll_write(context, unsent.chunk()),
                false => Pin::new(&mut *stream).poll_flush(context).map_ok(|()| 0),
            };
            match written {
                Poll::Ready(Ok(0)) => break !unsent.has_remaining(),
                Poll::Ready(Ok(written)) => unsent.advance(written),
                Poll::Ready(Err(_)) => break false,
                Poll::Pending => {
                    let mut room = [0; HEARD];
                    let mut heard = ReadBuf::new(&mut room);
                    return Pin::new(&mut *stream)
                        .poll_read(context, &mut heard)
                        .map(|_| Sent::Interrupted(heard.filled().to_vec()));
                }
            }
        };
        Poll::Ready(match sent {
            true => Sent::Whole,
            false => Sent::Interrupted(Vec::new()),
        })
    })
    .await
}

/// The final head; interim ones are skipped.
async fn read_head(session: &mut HttpSession) -> Result<(StatusCode, HeaderMap), Failure> {
    for _ in 0..=INTERIM_MAX {
        session
            .read_response()
            .await
            .map_err(|error| lost("head", &error))?;
        let head = session
            .resp_header()
            .ok_or(Failure::Unreachable("it sent no head"))?;
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Failure::Unreachable("it switched protocols"));
        }
        if !head.status.is_informational() {
            return Ok((head.status, head.headers.clone()));
        }
    }
    Err(Failure::Unreachable("it sent too many interim answers"))
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(http::header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Tells a failure to connect that this machine is the reason for from one on the way to the provider.
fn not_connected(error: &pingora::Error) -> Failure {
    match own_shortage(error.root_cause()) {
        Some(error) => {
            tracing::error!(%error, "no connection to the provider can be made from here");
            Failure::NotSent(error.kind())
        }
        None => lost("connect", error),
    }
}

/// Returns the system's error behind `cause` when it says that this machine is short of what a connection takes.
fn own_shortage<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let causes = std::iter::successors(Some(cause), |&cause| cause.source());
    let mut errors = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.find(|error| {
        error.raw_os_error().is_some_and(|code| {
            matches!(
                Errno::from_raw(code),
                Errno::EMFILE
                    | Errno::ENFILE
                    | Errno::ENOMEM
                    | Errno::ENOBUFS
                    | Errno::EADDRNOTAVAIL
                    | Errno::EADDRINUSE
            )
        })
    })
}

/// The cause goes to the log only; it may quote the provider.
fn lost(stage: &'static str, error: &pingora::Error) -> Failure {
    tracing::warn!(upstream.stage = stage, upstream.error = ?error.etype(), "the provider could not be reached");
    Failure::Unreachable(stage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pingora::ErrorType::{ConnectError, ConnectRefused, InternalError};

    #[tokio::test]
    async fn a_request_that_the_provider_takes_is_sent_whole() {
        let (here, mut provider) = tokio::io::duplex(1 << 10);
        let mut stream: Stream = Box::new(here);
        let mut unsent = Bytes::from_static(b"POST / HTTP/1.1");
        assert!(matches!(send(&mut stream, &mut unsent).await, Sent::Whole));
        assert!(!unsent.has_remaining());
        let mut taken = [0; 15];
        tokio::io::AsyncReadExt::read_exact(&mut provider, &mut taken)
            .await
            .unwrap();
        assert_eq!(&taken, b"POST / HTTP/1.1");
        // It says something while its part of the way is full, then it is gone.
        let mut unsent = Bytes::from(vec![b'x'; 4 << 10]);
        provider.write_all(b"HTTP/1.1 413").await.unwrap();
        let sent = send(&mut stream, &mut unsent).await;
        assert!(matches!(sent, Sent::Interrupted(said) if said == b"HTTP/1.1 413"));
        assert_eq!(unsent.remaining(), 3 << 10);
        drop(provider);
        let sent = send(&mut stream, &mut unsent).await;
        assert!(matches!(sent, Sent::Interrupted(said) if said.is_empty()));
    }

    #[test]
    fn a_request_is_written_as_http_says() {
        let mut headers = HeaderMap::new();
        headers.insert("host", http::HeaderValue::from_static("a"));
        headers.insert("x-b", http::HeaderValue::from_static("c d"));
        let text = wire("/v1/x", &headers, b"{}");
        assert_eq!(text, b"POST /v1/x HTTP/1.1\r\nhost: a\r\nx-b: c d\r\n\r\n{}");
        assert_eq!(text.capacity(), text.len(), "in one allocation");
    }

    #[test]
    fn only_a_shortage_of_this_machine_is_ours() {
        let wrapped = |code: Errno| {
            let system = io::Error::from_raw_os_error(code as i32);
            let socket = pingora::Error::because(ConnectError, "failed to create socket", system);
            pingora::Error::because(InternalError, "Fail to connect", socket)
        };
        for code in [
            Errno::EMFILE,
            Errno::ENFILE,
            Errno::ENOMEM,
            Errno::ENOBUFS,
            Errno::EADDRNOTAVAIL,
        ] {
            let failure = not_connected(&wrapped(code));
            assert!(matches!(failure, Failure::NotSent(_)), "{code}: {failure}");
        }
        for code in [
            Errno::ECONNREFUSED,
            Errno::ETIMEDOUT,
            Errno::ENETUNREACH,
            Errno::ECONNRESET,
        ] {
            let failure = not_connected(&wrapped(code));
            assert!(
                matches!(failure, Failure::Unreachable("connect")),
                "{code}: {failure}"
            );
        }
        let no_system = pingora::Error::explain(ConnectRefused, "no");
        assert!(matches!(
            not_connected(&no_system),
            Failure::Unreachable("connect")
        ));
    }
}
