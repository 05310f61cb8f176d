//! State of a connection's request heads. The connection counts their bytes, and the hooks know where they end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::time::Instant;

/// Longest head of a request, in bytes: request line and headers, or the header list of HTTP/2.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Value of `left` between heads.
pub(super) const NO_HEAD: usize = usize::MAX;

/// State of a connection's request heads.
#[derive(Debug)]
pub struct Head {
    deadline: Instant,
    has_arrived: AtomicBool,
    /// Bytes that the current head may still have.
    left: AtomicUsize,
    flushes_next_write: AtomicBool,
}

impl Head {
    /// Creates the state of a connection whose first head must be received by `deadline`.
    pub const fn expected_by(deadline: Instant) -> Self {
        Self {
            deadline,
            has_arrived: AtomicBool::new(false),
            left: AtomicUsize::new(NO_HEAD),
            flushes_next_write: AtomicBool::new(false),
        }
    }

    /// Whether the first head was received.
    pub fn has_arrived(&self) -> bool {
        self.has_arrived.load(Ordering::Relaxed)
    }

    /// Marks the beginning of a head.
    pub fn begins(&self) {
        self.left.store(HEAD_BYTES_MAX, Ordering::Relaxed);
    }

    /// Marks the end of a head. The body follows.
    pub fn ends(&self) {
        self.left.store(NO_HEAD, Ordering::Relaxed);
        if !self.has_arrived() {
            self.has_arrived.store(true, Ordering::Relaxed);
        }
    }

    /// Makes the connection send the next write at once. Pingora sends the head of an answer with the first piece of
    /// its body, which for a stream can come much later.
    pub fn flush_next_write(&self) {
        self.flushes_next_write.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_flush(&self) -> bool {
        self.flushes_next_write.load(Ordering::Relaxed)
            && self.flushes_next_write.swap(false, Ordering::Relaxed)
    }

    /// Whether the current head has reached [`HEAD_BYTES_MAX`].
    pub fn is_spent(&self) -> bool {
        self.left() == 0
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    pub(super) fn set_left(&self, left: usize) {
        self.left.store(left, Ordering::Relaxed);
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.left() != NO_HEAD
    }
}
