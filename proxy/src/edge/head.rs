//! The bounds of request heads: one deadline until the first one of a connection, and 64 KiB for each. The HTTP library
//! reads up to a mebibyte of a head before it gives up; here the connection below it ends earlier.

use async_trait::async_trait;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::{SslDigest, TlsRef};
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Longest head of a request, in bytes: request line and headers, or the header list of HTTP/2.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// How much of a head that is too long is thrown away, in bytes, so that its caller can read the answer: closing a connection
/// with unread bytes resets it.
const THROWN_AWAY_MAX: usize = 1 << 20;
/// Bytes that are thrown away at once.
const THROWN_AWAY_AT_ONCE: usize = 4 << 10;
/// No head is being read.
const NO_HEAD: usize = usize::MAX;

/// The state of a connection's heads, shared by the connection and the one who reads from it.
#[derive(Debug)]
pub struct Head {
    deadline: Instant,
    has_arrived: AtomicBool,
    /// Bytes that the head under way may still take; [`NO_HEAD`] between heads.
    left: AtomicUsize,
}

impl Head {
    /// A connection whose first head must be there at `deadline`.
    #[must_use]
    pub const fn expected_by(deadline: Instant) -> Self {
        Self {
            deadline,
            has_arrived: AtomicBool::new(false),
            left: AtomicUsize::new(NO_HEAD),
        }
    }

    /// When the first head must be there.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the first head is there.
    pub fn has_arrived(&self) -> bool {
        self.has_arrived.load(Ordering::Relaxed)
    }

    /// What is read from now on is a head.
    pub fn begins(&self) {
        self.left.store(HEAD_BYTES_MAX, Ordering::Relaxed);
    }

    /// The head is there in whole; what follows is its body.
    pub fn ends(&self) {
        self.left.store(NO_HEAD, Ordering::Relaxed);
        if !self.has_arrived() {
            self.has_arrived.store(true, Ordering::Relaxed);
        }
    }

    /// Whether as many bytes were read as a head may have.
    pub fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

/// A connection of HTTP/1 that ends when a head gets too long.
pub struct HeadLimited {
    inner: Stream,
    head: Arc<Head>,
}

impl std::fmt::Debug for HeadLimited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeadLimited").finish_non_exhaustive()
    }
}

impl HeadLimited {
    /// The same connection, with `head` as the one who counts.
    #[must_use]
    pub const fn new(inner: Stream, head: Arc<Head>) -> Self {
        Self { inner, head }
    }

    /// Throws away what has arrived.
    fn throw_away(&mut self, context: &mut Context<'_>) {
        let mut room = [0; THROWN_AWAY_AT_ONCE];
        let mut thrown_away = 0;
        while thrown_away < THROWN_AWAY_MAX {
            let mut buffer = ReadBuf::new(&mut room);
            match Pin::new(&mut self.inner).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => thrown_away += buffer.filled().len(),
                _ => return,
            }
        }
    }
}

impl AsyncRead for HeadLimited {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.head.left.load(Ordering::Relaxed);
        if left == NO_HEAD {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        if left == 0 {
            self.throw_away(context);
            return Poll::Ready(Err(io::Error::other("the head is too long")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        self.head.left.store(left.saturating_sub(read), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HeadLimited {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for HeadLimited {
    async fn shutdown(&mut self) {
        self.inner.shutdown().await;
    }
}

#[async_trait]
impl Peek for HeadLimited {
    async fn try_peek(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        self.inner.try_peek(buffer).await
    }
}

impl UniqueID for HeadLimited {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for HeadLimited {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.inner.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.inner.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.inner.selected_alpn_proto()
    }
}

impl GetTimingDigest for HeadLimited {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.inner.get_timing_digest()
    }
}

impl GetProxyDigest for HeadLimited {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.inner.get_proxy_digest()
    }
}

impl GetSocketDigest for HeadLimited {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.inner.get_socket_digest()
    }
}
