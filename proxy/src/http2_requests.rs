//! Counts the requests of one HTTP/2 connection whose keys are not known yet. Such a request takes memory before its
//! key is looked up, and a caller could have a hundred of them on each connection. So the edge reads only
//! [`UNKNOWN_MAX`] at once, and only one as long as no request of the connection had a known key.

use futures::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

/// Requests of unknown keys that a connection may have at once, after one of a known key.
pub const UNKNOWN_MAX: usize = 4;

/// The requests of an HTTP/2 connection.
#[derive(Debug, Default)]
pub struct Http2Requests {
    /// Requests whose processing has begun, since the connection was opened.
    begun: AtomicUsize,
    in_progress: AtomicUsize,
    /// Of these, requests whose key is known.
    known: AtomicUsize,
    /// True once a request had a known key.
    is_caller_known: AtomicBool,
    /// Task that reads the connection.
    reader: AtomicWaker,
}

/// Counts a request in progress until it is dropped.
#[derive(Debug)]
pub struct InProgress(Arc<Http2Requests>);

/// Counts a request as one of a known key until it is dropped.
#[derive(Debug)]
pub struct WithKnownKey(Arc<Http2Requests>);

impl Http2Requests {
    /// Counts a request that is processed from now on.
    pub fn begin(self: &Arc<Self>) -> InProgress {
        // In this order, so that the reader never misses it in both counts.
        self.in_progress.fetch_add(1, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.reader.wake();
        InProgress(Arc::clone(self))
    }

    /// Records that the key of a request in progress is known.
    pub fn key_is_known(self: &Arc<Self>) -> WithKnownKey {
        self.known.fetch_add(1, Ordering::SeqCst);
        self.is_caller_known.store(true, Ordering::SeqCst);
        self.reader.wake();
        WithKnownKey(Arc::clone(self))
    }

    /// Returns whether a further request may be read. `read` is the number of those that were, without those that will
    /// not begin.
    pub fn has_room(&self, read: usize) -> bool {
        let max = match self.is_caller_known.load(Ordering::SeqCst) {
            true => UNKNOWN_MAX,
            false => 1,
        };
        let not_begun = read.saturating_sub(self.begun());
        let known = self.known.load(Ordering::SeqCst);
        let unknown = self.in_progress.load(Ordering::SeqCst).saturating_sub(known);
        not_begun + unknown < max
    }

    /// Returns the number of requests whose processing has begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Has the reader woken by each change of the counts.
    pub fn wake_on_change(&self, reader: &Waker) {
        self.reader.register(reader);
    }

    /// Wakes the task that reads.
    pub fn wake_reader(&self) {
        self.reader.wake();
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::SeqCst);
        self.0.reader.wake();
    }
}

impl Drop for WithKnownKey {
    fn drop(&mut self) {
        self.0.known.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_unknown_keys_are_few() {
        let requests = Arc::new(Http2Requests::default());
        assert!(requests.has_room(0) && !requests.has_room(1), "one was read");
        let stranger = requests.begin();
        assert!(!requests.has_room(1), "it is in progress");
        drop(stranger);
        assert!(requests.has_room(1) && !requests.has_room(2));
        let mut known = vec![(requests.begin(), requests.key_is_known())];
        assert!(requests.has_room(2 + UNKNOWN_MAX - 1) && !requests.has_room(2 + UNKNOWN_MAX));
        known.extend((0..50).map(|_| (requests.begin(), requests.key_is_known())));
        let mut unknown: Vec<_> = (1..UNKNOWN_MAX).map(|_| requests.begin()).collect();
        let read = requests.begun();
        assert!(requests.has_room(read), "requests of known keys do not count");
        unknown.push(requests.begin());
        assert!(!requests.has_room(read + 1));
        known.clear();
        assert!(!requests.has_room(read + 1));
        unknown.pop();
        assert!(requests.has_room(read + 1));
    }
}
