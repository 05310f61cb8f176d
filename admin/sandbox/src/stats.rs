//! Counters of the sandbox, with which tests check the calls that reached the upstream. They contain no secret.

use domain::measured::Endpoint;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Characters of a key that are remembered.
const SHOWN: usize = 4;

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct Stats {
    requests: AtomicU64,
    completions: AtomicU64,
    responses: AtomicU64,
    embeddings: AtomicU64,
    streams: AtomicU64,
    in_flight: AtomicU64,
    /// Bytes of the bodies of the calls in flight.
    body_bytes: AtomicU64,
    unauthorized: AtomicU64,
    virtual_keys: AtomicU64,
    service_headers: AtomicU64,
    last_key: Mutex<String>,
}

impl Stats {
    /// Counts a request and returns its number.
    pub(super) fn count_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a call of this endpoint, and returns the number of the request.
    pub(super) fn count_call(&self, endpoint: Endpoint) -> u64 {
        let calls = match endpoint {
            Endpoint::Chat => &self.completions,
            Endpoint::Responses => &self.responses,
            Endpoint::Embeddings => &self.embeddings,
        };
        calls.fetch_add(1, Ordering::Relaxed);
        self.count_request()
    }

    /// Counts a streamed answer.
    pub(super) fn count_stream(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_unauthorized(&self) {
        self.unauthorized.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_virtual_key(&self) {
        self.virtual_keys.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request with an `X-Service-*` header, which the edge must keep to itself.
    pub(super) fn count_service_headers(&self) {
        self.service_headers.fetch_add(1, Ordering::Relaxed);
    }

    /// Stores the last characters of the most recent key.
    pub(super) fn remember_key(&self, key: &str) {
        let from = key.char_indices().rev().nth(SHOWN - 1).map_or(0, |(at, _)| at);
        key.get(from..)
            .unwrap_or_default()
            .clone_into(&mut self.last_key.lock());
    }

    /// Returns the answer of `GET /sandbox/stats`.
    pub(super) fn document(&self) -> Value {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last_key = self.last_key.lock().clone();
        json!({
            "requests": count(&self.requests), "chat_completions": count(&self.completions),
            "responses": count(&self.responses), "embeddings": count(&self.embeddings),
            "streams": count(&self.streams), "in_flight": count(&self.in_flight), "unauthorized": count(&self.unauthorized),
            "virtual_keys_seen": count(&self.virtual_keys), "service_headers_seen": count(&self.service_headers),
            "last_authorization_last4": last_key,
        })
    }
}

/// A call in progress. Counts until it is dropped, also if the caller disconnects.
pub(super) struct CallInFlight {
    stats: Arc<Stats>,
    /// Bytes of its body that were received.
    body_bytes: u64,
}

impl CallInFlight {
    /// Counts a call; `None` if there are already `most`.
    pub(super) fn enter(stats: &Arc<Stats>, most: u64) -> Option<Self> {
        let before = stats.in_flight.fetch_add(1, Ordering::Relaxed);
        let entered = Self {
            stats: stats.clone(),
            body_bytes: 0,
        };
        (before < most).then_some(entered)
    }

    /// Counts `bytes` of the body. Returns whether the bodies of all calls together have at most `most`.
    pub(super) fn receive(&mut self, bytes: usize, most: u64) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.stats.body_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.body_bytes += bytes;
        before.saturating_add(bytes) <= most
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        self.stats.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.stats
            .body_bytes
            .fetch_sub(self.body_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_in_flight_is_bounded_and_falls_again() {
        let stats = Arc::new(Stats::default());
        let first = CallInFlight::enter(&stats, 1);
        assert!(first.is_some() && CallInFlight::enter(&stats, 1).is_none());
        drop(first);
        assert_eq!(stats.document()["in_flight"], 0);
    }

    #[test]
    fn the_bodies_in_flight_are_bounded_together() {
        let stats = Arc::new(Stats::default());
        let enter = || CallInFlight::enter(&stats, 9).unwrap();
        let (mut one, mut other) = (enter(), enter());
        assert!(one.receive(60, 100) && other.receive(40, 100));
        assert!(!other.receive(1, 100));
        drop(other);
        assert!(one.receive(40, 100), "what a call received counts until its end");
        drop(one);
        assert!(enter().receive(100, 100));
    }
}
