//! Open items in the whole store, as last counted.

telemetry::metrics! {
    /// Gauges of open items in the whole store.
    pub struct OpenItemMetrics {
        /// Approved calls that are not settled yet.
        pub holds_open: gauge("holds_open"),
        /// Age of the oldest open hold.
        pub oldest_hold: fraction("holds_oldest_seconds"),
        /// Time since the deadline of the oldest open hold.
        pub overdue: fraction("holds_overdue_seconds"),
        /// Kept holds that nobody has corrected.
        pub holds_kept: gauge("holds_kept"),
        /// Spends that wait for a decision.
        pub approvals: gauge("intents_awaiting_approval"),
        /// Rounds of counting open holds and spends that a store failure cut off.
        pub failed: counter("census_failed_total"),
    }
}
