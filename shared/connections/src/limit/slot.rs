//! The state of one connection: when it became idle, or that it was closed for another. Lock-free, since every request
//! updates it twice.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

/// Value in place of the count of requests: closed for another connection.
const CLOSED: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct ConnectionSlot {
    /// Later connections have higher numbers.
    pub(super) number: u64,
    /// Address that the connection counts against.
    pub(super) counted_as: Option<IpAddr>,
    started: Instant,
    /// Requests in flight, or [`CLOSED`].
    requests: AtomicU32,
    /// True if it ever had a request of a known caller.
    is_known: AtomicBool,
    /// Time at which it was opened or its last request ended, in milliseconds since `started`.
    rests_since: AtomicU64,
    closing: Notify,
}

impl ConnectionSlot {
    /// Creates the slot of an idle connection.
    pub(super) fn new(number: u64, counted_as: Option<IpAddr>, started: Instant) -> Self {
        let slot = Self {
            number,
            counted_as,
            started,
            requests: AtomicU32::new(0),
            is_known: AtomicBool::new(false),
            rests_since: AtomicU64::new(0),
            closing: Notify::new(),
        };
        slot.rest();
        slot
    }

    /// Records the start of a known caller's request. Returns false if the connection was closed for another.
    pub(super) fn begin(&self) -> bool {
        // CLOSED is the maximum.
        let one_more = |requests: u32| requests.checked_add(1);
        let (set, read) = (Ordering::AcqRel, Ordering::Acquire);
        let begins = self.requests.fetch_update(set, read, one_more).is_ok();
        self.is_known.store(true, Ordering::Release);
        begins
    }

    /// Records the end of a request.
    pub(super) fn end(&self) {
        self.rest();
        self.requests.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns whether its caller is known, and when it became idle; `None` if a request is in flight or it is closed.
    pub(super) fn rests(&self) -> Option<(bool, u64)> {
        let found = || {
            (
                self.is_known.load(Ordering::Acquire),
                self.rests_since.load(Ordering::Relaxed),
            )
        };
        (self.requests.load(Ordering::Acquire) == 0).then(found)
    }

    /// Closes the connection if it is idle.
    pub(super) fn close(&self) -> bool {
        let (set, read) = (Ordering::AcqRel, Ordering::Acquire);
        let closed = self.requests.compare_exchange(0, CLOSED, set, read).is_ok();
        if closed {
            self.closing.notify_one();
        }
        closed
    }

    /// Returns true if the connection was closed for another.
    pub(super) fn is_closed(&self) -> bool {
        self.requests.load(Ordering::Acquire) == CLOSED
    }

    /// Waits until the connection is closed for another.
    pub(super) async fn closed(&self) {
        self.closing.notified().await;
    }

    fn rest(&self) {
        let since = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.rests_since.store(since, Ordering::Relaxed);
    }
}
