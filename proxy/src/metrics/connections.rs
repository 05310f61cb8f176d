//! Counters of callers' connections.

use connections::limit::ReachedLimit;

telemetry::metrics! {
    /// Counters of callers' connections.
    #[derive(Debug, Clone)]
    pub struct ConnectionMetrics {
        /// Connections closed at once: all (proxy.max_connections), address (proxy.max_connections_per_address).
        pub refused: counters("connections_refused_total", "limit", ReachedLimit::LABELS),
        /// Connections without a known caller's request, closed for new ones at a limit.
        pub closed_for_others: counter("connections_closed_for_others_total"),
    }
}
