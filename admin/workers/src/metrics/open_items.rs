//! What is open in the whole store, as it was last counted.

use prometheus::{Gauge, IntCounter, IntGauge, Result};
use telemetry::registrar::Registrar;

/// Gauges of what is open in the whole store.
pub struct OpenItemMetrics {
    /// Calls under way.
    pub holds_open: IntGauge,
    /// How long the oldest of them is.
    pub oldest_hold: Gauge,
    /// How far the oldest is past its deadline.
    pub overdue: Gauge,
    /// Holds that were kept and that nobody has corrected.
    pub holds_kept: IntGauge,
    /// Intents that wait for somebody to approve or deny them.
    pub approvals: IntGauge,
    /// Rounds that a store failure cut off.
    pub failed: IntCounter,
}

impl OpenItemMetrics {
    pub(super) fn new(metrics: &Registrar) -> Result<Self> {
        Ok(Self {
            holds_open: metrics.gauge("holds_open", "Approved calls that are not settled yet.")?,
            oldest_hold: metrics.fraction("holds_oldest_seconds", "Age of the oldest open hold.")?,
            overdue: metrics.fraction(
                "holds_overdue_seconds",
                "How far the oldest open hold is past its deadline.",
            )?,
            holds_kept: metrics.gauge("holds_kept", "Kept holds that nobody has corrected.")?,
            approvals: metrics.gauge("intents_awaiting_approval", "Spends that wait for a decision.")?,
            failed: metrics.counter(
                "census_failed_total",
                "Rounds of counting open holds and spends that a store failure cut off.",
            )?,
        })
    }
}
