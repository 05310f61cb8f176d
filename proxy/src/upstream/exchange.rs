//! The exchange with the provider: one request and the whole answer, under one deadline, without retries.

use super::connection_budget::ConnectionBudget;
use super::failure::{BreakOff, Failure, lost, not_connected};
use super::headers::ForwardList;
use super::identity::Identity;
use super::idle::{Connected, Idle, SWEEP_EVERY};
use super::open::OpenExchange;
use super::stream::AnswerStream;
use super::target::{RESOLVE_EVERY, Target};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::protocols::Stream;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use std::fmt;
use std::future::{pending, poll_fn};
use std::io::{self, Cursor};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, interval, timeout_at};

/// Interim (1xx) answers that are skipped, at most.
const INTERIM_MAX: usize = 8;
/// Longest body, in bytes, that is copied behind its head.
const JOINED_BODY_MAX: usize = 64 * 1024;
/// Bytes of an early answer that are read before the rest of the request and of the answer proceed concurrently.
const EARLY_ANSWER_BYTES: usize = 512;
/// Buffer between a connection that is read and written concurrently and the reader of its answer, in bytes.
const DUPLEX_BYTES: usize = 16 * 1024;

/// Client of a provider: identity, address, TLS settings and connection pool.
pub struct Upstream {
    identity: Identity,
    connector: TransportConnector,
    idle: Arc<Idle>,
    target: Target,
    timeout: Duration,
    max_response_bytes: usize,
    forward_list: ForwardList,
    /// Connections that may still be opened.
    budget: ConnectionBudget,
    /// Exchanges on a new connection, and on a reused one.
    connected: [AtomicU64; 2],
}

/// Where a client connects, and within which bounds.
#[derive(Debug, Clone, Copy)]
pub struct ClientSettings<'a> {
    pub base_url: &'a str,
    /// Empty for the system's certificates.
    pub ca_file: &'a Path,
    /// Of the whole exchange.
    pub timeout: Duration,
    pub forward_headers: &'a [String],
    pub max_response_bytes: usize,
}

/// The provider's whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    /// Names in lower case.
    pub headers: HeaderMap,
    /// As sent: still compressed if the provider compressed it.
    pub body: Bytes,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Creates a client whose connections are within `budget`.
    ///
    /// # Errors
    /// One line that names the setting.
    pub fn new(
        identity: Identity,
        settings: &ClientSettings<'_>,
        budget: ConnectionBudget,
    ) -> Result<Self, String> {
        let section = identity.section();
        let target = Target::parse(&section, settings.base_url)?;
        // The connector's own pool stays empty.
        let mut options = ConnectorOptions::new(1);
        if !settings.ca_file.as_os_str().is_empty() {
            let path = settings.ca_file.display().to_string();
            std::fs::metadata(settings.ca_file)
                .map_err(|error| format!("{section}.ca_file {path}: {error}"))?;
            options.ca_file = Some(path);
        }
        Ok(Self {
            connector: TransportConnector::new(Some(options)),
            idle: Arc::default(),
            target,
            timeout: settings.timeout,
            max_response_bytes: settings.max_response_bytes,
            budget,
            forward_list: ForwardList::parse(&section, settings.forward_headers)?,
            connected: Default::default(),
            identity,
        })
    }

    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Deadline of an exchange.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    #[must_use]
    pub fn host(&self) -> &str {
        &self.target.host
    }

    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    #[must_use]
    pub const fn forward_list(&self) -> &ForwardList {
        &self.forward_list
    }

    /// Exchanges so far, on a new connection and on a reused one.
    #[must_use]
    pub fn connected(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.connected[at].load(Ordering::Relaxed))
    }

    /// Resolves the provider's name every [`RESOLVE_EVERY`], for ever.
    pub async fn follow_address(self: Arc<Self>) {
        let mut ticks = interval(RESOLVE_EVERY);
        loop {
            ticks.tick().await;
            self.target.resolve().await;
        }
    }

    /// Closes idle connections that must not be used any more, every [`SWEEP_EVERY`], for ever.
    pub async fn keep_idle_fresh(self: Arc<Self>) {
        let mut ticks = interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.idle.sweep();
        }
    }

    /// Sends the request once and reads the answer. Drops `body` and `held`, the memory reserved for it, as soon as the
    /// request is sent: the provider may take long to answer.
    ///
    /// # Errors
    /// [`Failure`], after at most one request.
    pub async fn exchange(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
        held: impl Send,
    ) -> Result<Answer, Failure> {
        let deadline = Instant::now() + self.timeout;
        let attempt = async {
            match self.send(path, headers, body, held).await? {
                Sent::Answered(answer) => Ok(answer),
                Sent::Whole(mut open) => {
                    let (status, headers) = read_head(&mut open.session).await?;
                    self.read_rest(open, status, headers).await
                }
            }
        };
        timeout_at(deadline, pin!(attempt))
            .await
            .unwrap_or(Err(Failure::Timeout))
    }

    /// Like [`exchange`](Self::exchange), for a request that asks for server-sent events: if the provider sends them,
    /// the answer is returned as soon as its head was read, within `first_byte`.
    ///
    /// # Errors
    /// [`Failure`], after at most one request.
    pub async fn exchange_stream(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
        held: impl Send,
        first_byte: Duration,
    ) -> Result<Streamed, Failure> {
        let began = Instant::now();
        let begun = async {
            match self.send(path, headers, body, held).await? {
                Sent::Answered(answer) => Ok(Begun::Answered(answer)),
                Sent::Whole(mut open) => {
                    let (status, headers) = read_head(&mut open.session).await?;
                    Ok(Begun::Head {
                        status,
                        headers,
                        open,
                    })
                }
            }
        };
        let begun = timeout_at(began + first_byte, pin!(begun)).await;
        let (status, headers, open) = match begun.unwrap_or(Err(Failure::Timeout))? {
            Begun::Answered(answer) => return Ok(Streamed::Whole(answer)),
            Begun::Head {
                status,
                headers,
                open,
            } => (status, headers, open),
        };
        if AnswerStream::is_stream(status, &headers) {
            return Ok(Streamed::Stream(Box::new(AnswerStream::new(
                open, status, headers,
            ))));
        }
        let deadline = began + self.timeout.max(first_byte);
        timeout_at(deadline, pin!(self.read_rest(open, status, headers)))
            .await
            .unwrap_or(Err(Failure::Timeout))
            .map(Streamed::Whole)
    }

    /// Connects and sends the request.
    async fn send(
        &self,
        path: &str,
        headers: &HeaderMap,
        mut body: Bytes,
        held: impl Send,
    ) -> Result<Sent, Failure> {
        let unresolved = Failure::Unreachable(BreakOff::Resolve);
        let peer = self.target.peer().ok_or(unresolved)?;
        let idle = self.idle.take(&peer);
        self.connected[usize::from(idle.is_some())].fetch_add(1, Ordering::Relaxed);
        let Connected { mut stream, permit } = match idle {
            Some(connected) => connected,
            None => {
                let permit = self.budget.try_take();
                let permit = permit.ok_or(Failure::NotSent(io::ErrorKind::ResourceBusy))?;
                // Boxed: it needs eight times the space of all else here, and most calls find an idle connection.
                let stream = Box::pin(self.connector.new_stream(&*peer)).await;
                let stream = stream.map_err(|error| not_connected(&error))?;
                Connected { stream, permit }
            }
        };
        // A body of usual size is sent together with its head, in one system call instead of two.
        let joined = match body.len() <= JOINED_BODY_MAX {
            true => std::mem::take(&mut body),
            false => Bytes::new(),
        };
        let mut unsent = Cursor::new(encode(path, headers, &joined)).chain(body);
        drop(joined);
        if let Some(early) = send(&mut stream, &mut unsent).await {
            // Boxed: it is rare and needs much space.
            let answer = Box::pin(self.interrupted(stream, (unsent, held), early, &peer)).await;
            return answer.map(Sent::Answered);
        }
        drop((unsent, held));
        let session = HttpSession::new_with_options(stream, &*peer);
        Ok(Sent::Whole(OpenExchange {
            session,
            peer,
            permit,
            idle: Arc::clone(&self.idle),
        }))
    }

    /// Reads the body of an answer whose head was read, and keeps the connection.
    async fn read_rest(
        &self,
        mut open: OpenExchange,
        status: StatusCode,
        headers: HeaderMap,
    ) -> Result<Answer, Failure> {
        let body = self.read_body(&mut open.session, &headers).await?;
        open.keep().await;
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    /// Reads the answer of a provider that answered or closed before it had the whole request, usually with a refusal.
    /// The rest of the request is sent meanwhile, as the answer may be an interim one.
    async fn interrupted(
        &self,
        stream: Stream,
        (mut unsent, held): (impl Buf, impl Send),
        early: Vec<u8>,
        peer: &HttpPeer,
    ) -> Result<Answer, Failure> {
        let (mut from, mut to) = tokio::io::split(stream);
        let (near, mut far) = tokio::io::duplex(DUPLEX_BYTES);
        let sending = async move {
            drop(to.write_all_buf(&mut unsent).await);
            drop(to.flush().await);
            drop((unsent, held));
            pending().await
        };
        let receiving = async move {
            if far.write_all(&early).await.is_ok() {
                drop(tokio::io::copy(&mut from, &mut far).await);
            }
            drop(far);
            pending().await
        };
        let mut session = HttpSession::new_with_options(Box::new(near), peer);
        tokio::select! {
            answer = self.read(&mut session) => answer,
            never = sending => never,
            never = receiving => never,
        }
    }

    async fn read(&self, session: &mut HttpSession) -> Result<Answer, Failure> {
        let (status, headers) = read_head(session).await?;
        let body = self.read_body(session, &headers).await?;
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    /// Reads the whole body. A body in one piece is not copied.
    async fn read_body(&self, session: &mut HttpSession, headers: &HeaderMap) -> Result<Bytes, Failure> {
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        let mut length = 0_usize;
        while let Some(piece) = session
            .read_body_bytes()
            .await
            .map_err(|error| lost(BreakOff::Body, &error))?
        {
            length += piece.len();
            if length > self.max_response_bytes {
                return Err(bad_answer("its answer is too long"));
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

/// Encodes the head of the request and the part of its body that is sent with it. Names and values of a header map
/// contain no line ends.
fn encode(path: &str, headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    const LINES: [&[u8]; 4] = [b"POST ", b" HTTP/1.1\r\n", b": ", b"\r\n"];
    let [post, version, colon, end] = LINES;
    let lines: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + colon.len() + end.len())
        .sum();
    let ends = post.len() + path.len() + version.len() + end.len();
    let mut encoded = Vec::with_capacity(ends + lines + body.len());
    for part in [post, path.as_bytes(), version] {
        encoded.extend_from_slice(part);
    }
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), colon, value.as_bytes(), end] {
            encoded.extend_from_slice(part);
        }
    }
    encoded.extend_from_slice(end);
    encoded.extend_from_slice(body);
    encoded
}

/// A request that was sent.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every call has the large variant, and would be allocated for nothing"
)]
enum Sent {
    /// All of it, and the answer is to be read.
    Whole(OpenExchange),
    /// A part: the provider answered meanwhile.
    Answered(Answer),
}

/// The beginning of an answer that may be a stream.
#[expect(
    clippy::large_enum_variant,
    reason = "as for Sent: nearly every stream has the large variant"
)]
enum Begun {
    /// The head was read, and the body follows.
    Head {
        status: StatusCode,
        headers: HeaderMap,
        open: OpenExchange,
    },
    /// The provider answered before it had the whole request.
    Answered(Answer),
}

/// The provider's answer to a request for server-sent events.
pub enum Streamed {
    /// Something else, such as an error.
    Whole(Answer),
    /// The head was read.
    Stream(Box<AnswerStream>),
}

/// Sends `unsent` until the provider answers or closes: then returns the bytes of the answer so far.
async fn send(stream: &mut Stream, unsent: &mut impl Buf) -> Option<Vec<u8>> {
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
                    let mut room = [0; EARLY_ANSWER_BYTES];
                    let mut early = ReadBuf::new(&mut room);
                    return Pin::new(&mut *stream)
                        .poll_read(context, &mut early)
                        .map(|_| Some(early.filled().to_vec()));
                }
            }
        };
        Poll::Ready(match sent {
            true => None,
            false => Some(Vec::new()),
        })
    })
    .await
}

/// Reads the final head, after interim ones.
async fn read_head(session: &mut HttpSession) -> Result<(StatusCode, HeaderMap), Failure> {
    for _ in 0..=INTERIM_MAX {
        session
            .read_response()
            .await
            .map_err(|error| lost(BreakOff::Head, &error))?;
        let head = session.resp_header().ok_or(bad_answer("it sent no head"))?;
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(bad_answer("it switched protocols"));
        }
        if !head.status.is_informational() {
            return Ok((head.status, head.headers.clone()));
        }
    }
    Err(bad_answer("it sent too many interim answers"))
}

const fn bad_answer(why: &'static str) -> Failure {
    Failure::Unreachable(BreakOff::BadAnswer(why))
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(http::header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_sent_whole_unless_the_provider_interrupts() {
        let (here, mut provider) = tokio::io::duplex(1 << 10);
        let mut stream: Stream = Box::new(here);
        let mut unsent = Bytes::from_static(b"POST / HTTP/1.1");
        assert_eq!(send(&mut stream, &mut unsent).await, None);
        assert!(!unsent.has_remaining());
        let mut taken = [0; 15];
        tokio::io::AsyncReadExt::read_exact(&mut provider, &mut taken)
            .await
            .unwrap();
        assert_eq!(&taken, b"POST / HTTP/1.1");
        // It sends something while its receive buffer is full, then it closes.
        let mut unsent = Bytes::from(vec![b'x'; 4 << 10]);
        provider.write_all(b"HTTP/1.1 413").await.unwrap();
        let sent = send(&mut stream, &mut unsent).await;
        assert_eq!(sent.as_deref(), Some(&b"HTTP/1.1 413"[..]));
        assert_eq!(unsent.remaining(), 3 << 10);
        drop(provider);
        let sent = send(&mut stream, &mut unsent).await;
        assert_eq!(sent, Some(Vec::new()));
    }

    #[test]
    fn a_request_is_encoded_as_http_1_1() {
        let mut headers = HeaderMap::new();
        headers.insert("host", http::HeaderValue::from_static("a"));
        headers.insert("x-b", http::HeaderValue::from_static("c d"));
        let text = encode("/v1/x", &headers, b"{}");
        assert_eq!(text, b"POST /v1/x HTTP/1.1\r\nhost: a\r\nx-b: c d\r\n\r\n{}");
        assert_eq!(text.capacity(), text.len(), "in one allocation");
    }
}
