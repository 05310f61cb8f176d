//! State of a connection's request heads. The connection counts their bytes, and the hooks mark where they end.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use tokio::time::Instant;

/// Longest head of a request, in bytes: request line and headers, or the header list of HTTP/2.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Value of `left` between heads.
pub(super) const NO_HEAD: usize = usize::MAX;

/// State of a connection's request heads.
#[derive(Debug)]
pub struct RequestHeads {
    deadline: Instant,
    has_arrived: AtomicBool,
    /// Remaining bytes of the current head.
    left: AtomicUsize,
    /// Upper bound of the bytes of the current head that were received with the previous request. `left` does not count
    /// them.
    carried: AtomicUsize,
    /// Bytes of the current head, and of the data behind it, that HTTP has received. Counted if the head is fresh.
    given: AtomicUsize,
    /// Nothing of the current head had been given to HTTP before it began.
    is_fresh: AtomicBool,
    /// The last chunked body was read to its end, and nothing behind it.
    is_at_boundary: AtomicBool,
    /// The part that the hooks marked last; the connection takes it once.
    begun: AtomicU8,
    flushes_next_write: AtomicBool,
}

/// Part of a request that begins with the next byte that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    Nothing,
    Head,
    ChunkedBody,
}

impl RequestHeads {
    /// Creates the state of a connection that must receive its first head by `deadline`.
    pub const fn expected_by(deadline: Instant) -> Self {
        Self {
            deadline,
            has_arrived: AtomicBool::new(false),
            left: AtomicUsize::new(NO_HEAD),
            carried: AtomicUsize::new(0),
            given: AtomicUsize::new(0),
            is_fresh: AtomicBool::new(false),
            is_at_boundary: AtomicBool::new(false),
            begun: AtomicU8::new(Begun::Nothing as u8),
            flushes_next_write: AtomicBool::new(false),
        }
    }

    /// Creates the state of a connection whose heads are not seen.
    pub fn unseen() -> Self {
        let head = Self::expected_by(Instant::now());
        head.ends();
        head
    }

    /// Returns whether the first head was received.
    pub fn has_arrived(&self) -> bool {
        self.has_arrived.load(Ordering::Relaxed)
    }

    /// Marks the beginning of a head. `is_fresh`: it is certain that nothing of it was received yet.
    pub fn begins(&self, is_fresh: bool) {
        let is_at_boundary = self.is_at_boundary.swap(false, Ordering::Relaxed);
        self.is_fresh.store(is_fresh || is_at_boundary, Ordering::Relaxed);
        self.given.store(0, Ordering::Relaxed);
        self.begun.store(Begun::Head as u8, Ordering::Relaxed);
        self.left.store(HEAD_BYTES_MAX, Ordering::Relaxed);
    }

    /// Marks the end of a head. The body follows.
    pub fn ends(&self) {
        let left = self.left();
        self.left.store(NO_HEAD, Ordering::Relaxed);
        // Bytes before the last read belong to this head, so the next head begins in the last read or later.
        match HEAD_BYTES_MAX.checked_sub(left) {
            None | Some(0) => {}
            Some(read) => self.carried.store(read, Ordering::Relaxed),
        }
        if !self.has_arrived() {
            self.has_arrived.store(true, Ordering::Relaxed);
        }
    }

    /// Marks that the body is chunked: it is read in pieces of up to 64 KiB, and the next head can begin in the last
    /// piece. Returns whether the connection checks the framing of the body, as it can only if HTTP has got nothing of
    /// it: no more than the head, of which `head_bytes` were read.
    pub fn body_is_chunked(&self, head_bytes: usize) -> bool {
        self.carried.store(HEAD_BYTES_MAX, Ordering::Relaxed);
        let is_checked =
            self.is_fresh.load(Ordering::Relaxed) && self.given.load(Ordering::Relaxed) == head_bytes;
        if is_checked {
            self.begun.store(Begun::ChunkedBody as u8, Ordering::Relaxed);
        }
        is_checked
    }

    /// Counts bytes that HTTP receives of a fresh head.
    pub(super) fn give(&self, bytes: usize) {
        self.given.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.is_fresh.load(Ordering::Relaxed)
    }

    /// Marks whether HTTP has got a chunked body to its end and nothing behind it.
    pub(super) fn set_at_boundary(&self, is_at_boundary: bool) {
        if self.is_at_boundary.load(Ordering::Relaxed) != is_at_boundary {
            self.is_at_boundary.store(is_at_boundary, Ordering::Relaxed);
        }
    }

    /// Returns the part that has begun since the last call.
    pub(super) fn take_begun(&self) -> Begun {
        const NOTHING: u8 = Begun::Nothing as u8;
        const HEAD: u8 = Begun::Head as u8;
        if self.begun.load(Ordering::Relaxed) == NOTHING {
            return Begun::Nothing;
        }
        match self.begun.swap(NOTHING, Ordering::Relaxed) {
            NOTHING => Begun::Nothing,
            HEAD => Begun::Head,
            _ => Begun::ChunkedBody,
        }
    }

    /// Makes the connection send the next write at once. Pingora sends the head of an answer with the first piece of
    /// its body, which can come much later in a stream.
    pub fn flush_next_write(&self) {
        self.flushes_next_write.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_flush(&self) -> bool {
        self.flushes_next_write.load(Ordering::Relaxed)
            && self.flushes_next_write.swap(false, Ordering::Relaxed)
    }

    /// Returns whether the maximum length of a head was read for the current one.
    pub fn is_spent(&self) -> bool {
        self.left() == 0
    }

    /// Returns whether the current head may be longer than [`HEAD_BYTES_MAX`], judged by the bytes read for it and
    /// those received before. A watched stream adds one byte to the latter, hence not `<`.
    pub fn may_be_too_long(&self) -> bool {
        self.left() <= self.carried.load(Ordering::Relaxed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_bytes_count_until_they_cannot_matter() {
        let head = RequestHeads::expected_by(Instant::now());
        let read = |bytes: usize| {
            head.begins(false);
            head.set_left(HEAD_BYTES_MAX - bytes);
            let may_be_too_long = head.may_be_too_long();
            head.ends();
            may_be_too_long
        };
        assert!(!read(HEAD_BYTES_MAX - 1), "nothing was received before");
        assert!(!read(0), "all of it was");
        assert!(read(1), "it may have been nearly as long as a head may be");
        assert!(!read(100));
        assert!(!read(HEAD_BYTES_MAX - 101));
        assert!(read(HEAD_BYTES_MAX));
        assert!(read(1));
        assert!(!read(1));
        assert!(
            !head.body_is_chunked(0),
            "nothing is known of what was received before"
        );
        assert!(read(0), "a piece of the body may have held all of it");
        assert!(read(1));
        assert!(!read(1));
    }

    #[test]
    fn a_chunked_body_is_checked_if_http_has_nothing_of_it() {
        let head = RequestHeads::expected_by(Instant::now());
        for (is_fresh, given, is_checked) in [(true, 9, true), (true, 10, false), (false, 9, false)] {
            head.begins(is_fresh);
            assert_eq!(head.take_begun(), Begun::Head);
            head.give(4);
            head.give(given - 4);
            head.ends();
            assert_eq!(head.body_is_chunked(9), is_checked, "{is_fresh} {given}");
            let begun = if is_checked {
                Begun::ChunkedBody
            } else {
                Begun::Nothing
            };
            assert_eq!(head.take_begun(), begun);
            assert_eq!(head.take_begun(), Begun::Nothing);
        }
        for is_at_boundary in [true, false] {
            head.set_at_boundary(true);
            head.set_at_boundary(is_at_boundary);
            head.begins(false);
            assert_eq!(head.is_fresh(), is_at_boundary);
        }
        head.begins(false);
        assert!(!head.is_fresh(), "it counts once");
    }

    #[test]
    fn one_write_is_flushed_when_asked_for() {
        let head = RequestHeads::expected_by(Instant::now());
        assert!(!head.take_flush());
        head.flush_next_write();
        assert!(head.take_flush() && !head.take_flush());
    }
}
