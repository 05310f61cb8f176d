//! Callers' connections: the limits of [`connections::limit`], counts of refused connections, and a log line.

use crate::metrics::connections::ConnectionMetrics;
use connections::limit::{ConnectionLimit, OpenConnection, ReachedLimit};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Seconds between two log lines about refused connections.
const WARN_EVERY_S: u64 = 60;

/// Open and refused connections.
#[derive(Debug)]
pub struct Connections {
    limit: ConnectionLimit,
    metrics: ConnectionMetrics,
    started: Instant,
    warned_at_s: AtomicU64,
}

impl Connections {
    /// Creates the limits: at most `max` connections, and `max_per_address` from each address outside of `trusted`.
    pub fn new(max: usize, max_per_address: usize, trusted: Vec<IpNet>, metrics: ConnectionMetrics) -> Self {
        Self {
            limit: ConnectionLimit::new(max, max_per_address, trusted),
            metrics,
            started: Instant::now(),
            // The first refusal is logged immediately.
            warned_at_s: AtomicU64::new(u64::MAX),
        }
    }

    /// Counts a connection from `peer`. Waits while many connections are being closed for others.
    ///
    /// # Errors
    /// The limit that is reached.
    pub async fn admit(&self, peer: IpAddr) -> Result<OpenConnection, ReachedLimit> {
        self.limit.admit(peer).await.inspect_err(|limit| {
            self.metrics.refused[*limit as usize].inc();
            self.warn(*limit);
        })
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.limit.open()
    }

    /// Returns `proxy.max_connections`, or a lower number if the system's limit of open files requires it.
    pub fn max(&self) -> usize {
        self.limit.max()
    }

    /// Counts an idle connection that was closed to make room for a new one.
    pub fn closed_for_another(&self) {
        self.metrics.closed_for_others.inc();
    }

    /// Logs a refusal at most once every [`WARN_EVERY_S`], so that a flood does not fill the log.
    fn warn(&self, limit: ReachedLimit) {
        let now = self.started.elapsed().as_secs();
        let last = self.warned_at_s.load(Ordering::Relaxed);
        let is_due = last == u64::MAX || now.saturating_sub(last) >= WARN_EVERY_S;
        let swapped = || {
            let (ok, other) = (Ordering::Relaxed, Ordering::Relaxed);
            self.warned_at_s.compare_exchange(last, now, ok, other).is_ok()
        };
        if is_due && swapped() {
            let setting = match limit {
                ReachedLimit::All => "proxy.max_connections",
                ReachedLimit::Address => "proxy.max_connections_per_address",
            };
            tracing::warn!(
                setting,
                open = self.open(),
                "new connections are closed: the limit is reached"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use prometheus::IntCounter;
    use telemetry::registrar::Registrar;

    #[test]
    fn refused_connections_are_counted_by_limit() {
        let metrics = ConnectionMetrics::new(&Registrar::new("x")).unwrap();
        let all = Connections::new(2, 1, Vec::new(), metrics);
        let from = |address: &str| {
            all.admit(address.parse().unwrap())
                .now_or_never()
                .expect("no connection is being closed")
        };
        let first = from("203.0.113.1").unwrap();
        let _at_work = first.requests().begin().unwrap();
        assert_eq!(from("203.0.113.1").unwrap_err(), ReachedLimit::Address);
        let second = from("203.0.113.2").unwrap();
        let _at_work = second.requests().begin().unwrap();
        assert_eq!(from("203.0.113.3").unwrap_err(), ReachedLimit::All);
        assert_eq!(from("203.0.113.4").unwrap_err(), ReachedLimit::All);
        assert_eq!((all.open(), all.max()), (2, 2));
        let refused: Vec<u64> = all.metrics.refused.iter().map(IntCounter::get).collect();
        assert_eq!(refused, [2, 1], "in the order of their labels");
    }
}
