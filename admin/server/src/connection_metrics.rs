//! Metrics of the connections of the two listeners.

use connections::limit::ReachedLimit;
use prometheus::{IntCounter, IntGauge, Result};
use telemetry::registrar::Registrar;

/// Labels of the listeners: the management API, and the ops listener with `/metrics`.
const LISTENERS: [&str; 2] = ["management", "ops"];

/// Counters of one listener.
#[derive(Debug, Clone)]
pub struct ListenerMetrics {
    /// Current number, idle ones included.
    pub open: IntGauge,
    /// Connections that were closed at once, in the order of [`ReachedLimit::LABELS`].
    pub refused: [IntCounter; 2],
    /// Idle connections that were closed to make room for new ones.
    pub closed_for_others: IntCounter,
    /// Connections that were closed because the client did not read its answer.
    pub stalled: IntCounter,
}

impl ListenerMetrics {
    /// Registers those of the management listener and of the ops listener.
    pub(crate) fn both(metrics: &Registrar) -> Result<[Self; 2]> {
        let open = metrics.gauges("connections", "Open connections.", "listener", LISTENERS)?;
        let refused = metrics.counter_family(
            "connections_refused_total",
            "Connections closed at once: all (admin.max_connections), address (admin.max_connections_per_address).",
            &["listener", "limit"],
        )?;
        let closed_for_others = metrics.counters(
            "connections_closed_for_others_total",
            "Connections without a known caller's request, closed for new ones at a limit.",
            "listener",
            LISTENERS,
        )?;
        let stalled = metrics.counters(
            "connections_stalled_total",
            "Connections closed since their client did not read its answer.",
            "listener",
            LISTENERS,
        )?;
        let of = |at: usize| Self {
            open: open[at].clone(),
            refused: ReachedLimit::LABELS.map(|limit| refused.with_label_values(&[LISTENERS[at], limit])),
            closed_for_others: closed_for_others[at].clone(),
            stalled: stalled[at].clone(),
        };
        Ok([of(0), of(1)])
    }
}
