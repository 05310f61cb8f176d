//! Sending the one request and reading the whole answer, under one deadline, without retries.

use super::idle::{Idle, SWEEP_EVERY};
use super::target::Target;
use bytes::{Bytes, BytesMut};
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::v1::client::{HttpSession, http_req_header_to_wire};
use pingora_http::{RequestHeader, ResponseHeader};
use shared::settings::UpstreamSettings;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, interval, timeout_at};

/// Interim (1xx) answers that are skipped before the real one.
const INTERIM_MAX: usize = 8;
/// Bodies up to this size, in bytes, are copied behind their head.
const JOINED_BODY: usize = 64 * 1024;

/// The way to the provider.
pub struct Upstream {
    connector: TransportConnector,
    idle: Idle,
    target: Target,
    timeout: Duration,
    max_response_bytes: usize,
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
    /// Status and headers.
    pub head: Box<ResponseHeader>,
    /// The body, as sent.
    pub body: Bytes,
}

/// Why there is no answer. In each case the provider may have done the work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Not reached, broken off, truncated, or not HTTP.
    #[error("the provider could not be reached or broke off: {0}")]
    Unreachable(&'static str),
    /// No whole answer in time.
    #[error("the provider gave no whole answer in time")]
    Timeout,
}

impl Upstream {
    /// The way to the provider in `settings`.
    ///
    /// # Errors
    /// One line that names the key.
    pub fn new(settings: &UpstreamSettings) -> Result<Self, String> {
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

    /// Exchanges so far, on a new connection and on one that was there already.
    #[must_use]
    pub fn connected(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.connected[at].load(Ordering::Relaxed))
    }

    /// Closes the unused connections that are not to be used any more, again and again, for ever.
    pub async fn keep_idle_fresh(&self) {
        let mut ticks = interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.idle.sweep();
        }
    }

    /// Sends the request once and reads the answer.
    ///
    /// # Errors
    /// [`Failure`], after at most one request.
    pub async fn exchange(&self, head: Box<RequestHeader>, body: Bytes) -> Result<Answer, Failure> {
        let deadline = Instant::now() + self.timeout;
        timeout_at(deadline, pin!(self.attempt(head, body)))
            .await
            .unwrap_or(Err(Failure::Timeout))
    }

    async fn attempt(&self, head: Box<RequestHeader>, body: Bytes) -> Result<Answer, Failure> {
        let failed = Failure::Unreachable;
        let peer = self.target.peer().ok_or(failed("its name does not resolve"))?;
        let idle = self.idle.take(&peer);
        self.connected[usize::from(idle.is_some())].fetch_add(1, Ordering::Relaxed);
        let mut stream = match idle {
            Some(stream) => stream,
            None => {
                // On the heap: it takes eight times the room of all else here, and most calls find a connection.
                let connected = Box::pin(self.connector.new_stream(&*peer)).await;
                connected.map_err(|error| lost("connect", &error))?
            }
        };
        send(&mut stream, &head, &body).await?;
        let mut session = HttpSession::new_with_options(stream, &*peer);
        let head = read_head(&mut session).await?;
        let body = self.read_body(&mut session, &head).await?;
        session.respect_keepalive();
        if let Some(stream) = session.reuse().await {
            self.idle.keep(peer, stream);
        }
        Ok(Answer { head, body })
    }

    /// The whole body. An answer in one piece is passed on without a copy.
    async fn read_body(&self, session: &mut HttpSession, head: &ResponseHeader) -> Result<Bytes, Failure> {
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
                    let declared = content_length(head).unwrap_or(0).min(self.max_response_bytes);
                    whole.reserve(declared.max(length));
                    whole.extend_from_slice(&first);
                }
                whole.extend_from_slice(&piece);
            }
        }
        Ok(if whole.is_empty() { first } else { whole.freeze() })
    }
}

/// Writes the request. A body of usual size goes out together with its head, in one system call instead of two.
async fn send(stream: &mut Stream, head: &RequestHeader, body: &Bytes) -> Result<(), Failure> {
    let mut wire = http_req_header_to_wire(head).ok_or(Failure::Unreachable("its address is malformed"))?;
    let written = if body.len() <= JOINED_BODY {
        wire.extend_from_slice(body);
        stream.write_all(&wire).await
    } else {
        match stream.write_all(&wire).await {
            Ok(()) => stream.write_all(body).await,
            Err(error) => Err(error),
        }
    };
    let flushed = match written {
        Ok(()) => stream.flush().await,
        Err(error) => Err(error),
    };
    flushed.map_err(|error| {
        tracing::warn!(upstream.stage = "write", upstream.error = %error.kind(), "the provider could not be reached");
        Failure::Unreachable("write")
    })
}

/// The final head; interim ones are skipped. Names come without their letter case, which HTTP does not know.
async fn read_head(session: &mut HttpSession) -> Result<Box<ResponseHeader>, Failure> {
    for _ in 0..=INTERIM_MAX {
        session
            .read_response()
            .await
            .map_err(|error| lost("head", &error))?;
        let head = session
            .resp_header()
            .ok_or(Failure::Unreachable("it sent no head"))?;
        if head.status == http::StatusCode::SWITCHING_PROTOCOLS {
            return Err(Failure::Unreachable("it switched protocols"));
        }
        if !head.status.is_informational() {
            return Ok(Box::new(ResponseHeader::from(head.as_owned_parts())));
        }
    }
    Err(Failure::Unreachable("it sent too many interim answers"))
}

fn content_length(head: &ResponseHeader) -> Option<usize> {
    head.headers
        .get(http::header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// The cause goes to the log only; it may quote the provider.
fn lost(stage: &'static str, error: &pingora_core::Error) -> Failure {
    tracing::warn!(upstream.stage = stage, upstream.error = ?error.etype(), "the provider could not be reached");
    Failure::Unreachable(stage)
}
