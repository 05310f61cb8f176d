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
}

impl Head {
    /// Creates the state of a connection whose first head must be received by `deadline`.
    #[must_use]
    pub const fn expected_by(deadline: Instant) -> Self {
        Self {
            deadline,
            has_arrived: AtomicBool::new(false),
            left: AtomicUsize::new(NO_HEAD),
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
