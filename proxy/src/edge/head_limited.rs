//! Limits on HTTP/1 request heads, enforced on the connection below HTTP: 64 KiB and one deadline for each head.
//! Pingora reads up to 1 MiB, allows 60 seconds for each read, and answers a malformed head with a bare 400.
//!
//! So this connection itself answers heads that are too long, too late or malformed, with the body and headers of every
//! other answer, instead of Pingora. Then it reports a broken connection to HTTP. It also checks the framing of chunked
//! bodies ([`super::chunks`]).

use super::delegate::delegate_connection;
use super::head::{Begun, HEAD_BYTES_MAX, NO_HEAD, RequestHeads};
use super::held_back::HeldBack;
use super::refused_head;
use super::write_buffer::WriteBuffer;
use crate::metrics::Metrics;
use crate::reply::refusal::Refusal;
use async_trait::async_trait;
use bytes::{Buf as _, Bytes};
use pingora::protocols::http::ServerSession;
use pingora::protocols::{Shutdown, Stream};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Maximum bytes after the last request that are discarded, so that the caller can read the answer: closing a
/// connection with unread bytes resets it.
const DISCARDED_MAX: usize = 1 << 20;
/// Bytes discarded in one read.
const DISCARD_BYTES: usize = 4 << 10;

/// Time-out that is registered when first polled: most connections never poll one.
#[derive(Debug, Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Returns whether the time is over. `until` is evaluated at the first poll.
    fn is_over(&mut self, context: &mut Context<'_>, until: impl FnOnce() -> Instant) -> bool {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(until())));
        sleep.as_mut().poll(context).is_ready()
    }
}

/// HTTP/1 connection that bounds its request heads, and refuses those that are too long, too late or malformed. It
/// collects writes until they are flushed, also for HTTP/2 without TLS, whose heads it does not see.
pub struct HeadLimited {
    inner: Stream,
    head: Arc<RequestHeads>,
    metrics: Arc<Metrics>,
    client_timeout: Duration,
    /// Deadline of the current head.
    late: Timer,
    /// Deadline for the caller to read the refusal or the end of the connection.
    closed: Timer,
    /// Unwritten part of a refusal. Nothing else is read or written after it.
    refusal: Option<Bytes>,
    /// Received bytes that HTTP does not have yet.
    held: HeldBack,
    /// Written bytes that wait for the next flush.
    unsent: WriteBuffer,
}

impl std::fmt::Debug for HeadLimited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeadLimited").finish_non_exhaustive()
    }
}

impl HeadLimited {
    /// Wraps a connection. `client_timeout` (`proxy.client_timeout_ms`) is the time for each further head, counted from
    /// its first byte, and the time for the caller to read a refusal or the end of the connection.
    pub fn new(
        inner: Stream,
        head: Arc<RequestHeads>,
        metrics: Arc<Metrics>,
        client_timeout: Duration,
    ) -> Self {
        Self {
            inner,
            head,
            metrics,
            client_timeout,
            late: Timer::default(),
            closed: Timer::default(),
            refusal: None,
            held: HeldBack::default(),
            unsent: WriteBuffer::default(),
        }
    }

    /// Returns the state of the heads of a request's connection; `None` over HTTP/2.
    pub fn head_of(session: &ServerSession) -> Option<&RequestHeads> {
        let connection: &Self = session.stream()?.as_any().downcast_ref()?;
        Some(&connection.head)
    }

    /// Returns whether the current head is late: the first by the deadline of the connection, a further one by the time
    /// since its first byte. Before that byte, Pingora closes the connection if it is idle for too long.
    fn is_late(&mut self, context: &mut Context<'_>, left: usize) -> bool {
        match self.head.has_arrived() {
            false => self.late.is_over(context, || self.head.deadline()),
            true if left == HEAD_BYTES_MAX => false,
            true => self
                .late
                .is_over(context, || Instant::now() + self.client_timeout),
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        let digest = self.inner.get_socket_digest();
        let peer = digest.and_then(|digest| Some(digest.peer_addr()?.as_inet()?.ip()));
        self.refusal = Some(refused_head::bytes(&self.metrics, peer, refusal));
    }

    /// Returns whether HTTP's output is discarded. While a head is expected, HTTP writes only if the head is malformed.
    fn is_refused(&mut self) -> bool {
        if self.refusal.is_none() && self.head.is_awaited() {
            self.refuse(&match self.head.is_spent() {
                true => refused_head::too_long(),
                false => refused_head::not_http(),
            });
        }
        self.refusal.is_some()
    }

    /// Writes the refusal and discards received bytes.
    fn poll_write_and_discard(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.poll_write_refusal(context);
        ready!(self.in_time(context, polled))?;
        self.discard(context);
        Poll::Ready(Ok(()))
    }

    fn poll_write_refusal(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        while let Some(left) = self.refusal.as_mut().filter(|left| !left.is_empty()) {
            match ready!(Pin::new(&mut self.inner).poll_write(context, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => left.advance(written),
            }
        }
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unsent.poll_flush(&mut self.inner, context)
    }

    /// Fails if the caller does not read the end of this connection in time.
    fn in_time(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        if polled.is_pending()
            && self
                .closed
                .is_over(context, || Instant::now() + self.client_timeout)
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    }

    /// Discards received bytes.
    fn discard(&mut self, context: &mut Context<'_>) {
        let mut storage = [0; DISCARD_BYTES];
        let mut discarded = 0;
        while discarded < DISCARDED_MAX {
            let mut buffer = ReadBuf::new(&mut storage);
            match Pin::new(&mut self.inner).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => discarded += buffer.filled().len(),
                _ => return,
            }
        }
    }

    /// Reads a part of a head.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        left: usize,
    ) -> Poll<io::Result<()>> {
        if left == HEAD_BYTES_MAX && self.head.has_arrived() {
            // The timer was set for an earlier head.
            self.late = Timer::default();
        }
        if self.head.take_begun() == Begun::Head {
            self.held.head_begins();
        }
        let before = buffer.filled().len();
        // Held bytes came with the request before: they count as those do that HTTP has got with it.
        let was_held = !self.held.is_empty();
        match self.held.poll_read(&mut self.inner, context, buffer) {
            Poll::Ready(read) => {
                read?;
                if self.head.is_fresh() {
                    self.held.cut_head(buffer, before);
                    self.head.give(buffer.filled().len() - before);
                }
                let read = buffer.filled().len() - before;
                if !was_held {
                    self.head.set_left(left.saturating_sub(read));
                }
                Poll::Ready(Ok(()))
            }
            Poll::Pending if self.is_late(context, left) => {
                self.refuse(&refused_head::too_late());
                self.poll_write_and_discard(context).map(|_| Err(head_refused()))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Reads a part of a body, or what is behind it.
    fn poll_body(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.head.take_begun() == Begun::ChunkedBody {
            self.held.body_begins();
        }
        let before = buffer.filled().len();
        ready!(self.held.poll_read(&mut self.inner, context, buffer))?;
        let is_at_boundary = self.held.is_in_body() && self.held.cut_body(buffer, before);
        self.head.set_at_boundary(is_at_boundary);
        Poll::Ready(Ok(()))
    }
}

/// Returns the error that HTTP reads from a connection whose head was refused.
fn head_refused() -> io::Error {
    io::Error::other("the head was refused")
}

impl AsyncRead for HeadLimited {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.head.left();
        if left == 0 && self.refusal.is_none() {
            self.refuse(&refused_head::too_long());
        }
        if self.refusal.is_some() {
            return self.poll_write_and_discard(context).map(|_| Err(head_refused()));
        }
        match left {
            NO_HEAD => self.poll_body(context, buffer),
            left => self.poll_head(context, buffer, left),
        }
    }
}

impl AsyncWrite for HeadLimited {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.refusal.is_some() {
            return self.poll_write_and_discard(context);
        }
        self.poll_send(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.refusal.is_some() {
            ready!(self.poll_write_and_discard(context))?;
        } else {
            // A pipelined request after the answer that ends the connection.
            self.discard(context);
        }
        let polled = match self.poll_send(context) {
            Poll::Ready(Ok(())) => Pin::new(&mut self.inner).poll_shutdown(context),
            unsent => unsent,
        };
        self.in_time(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_refused() {
            return Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum()));
        }
        let this = &mut *self;
        let written = ready!(this.unsent.poll_write(&mut this.inner, context, pieces))?;
        if self.head.take_flush() {
            // Bytes that do not fit now are sent with the next write.
            let _flushed = self.poll_send(context)?;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

#[async_trait]
impl Shutdown for HeadLimited {
    async fn shutdown(&mut self) {
        let _sent = poll_fn(|context| self.poll_send(context)).await;
        self.inner.shutdown().await;
    }
}

delegate_connection!(HeadLimited);

#[cfg(test)]
mod tests;
