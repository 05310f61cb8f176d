//! State of a connection's request heads, shared by the connection, which counts their bytes, and the hooks, which know
//! where they end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::time::Instant;

/// Longest head of a request, in bytes: request line and headers, or the header list of HTTP/2.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// No head is being read.
pub(super) const NO_HEAD: usize = usize::MAX;

/// The state of a connection's heads, shared by the connection and the proxy's hooks.
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
