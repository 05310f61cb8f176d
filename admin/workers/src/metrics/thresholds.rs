//! Limits that are nearly reached, as last read, and the recorded notices. No label names an agent or account.

use domain::threshold::{Threshold, Watched};
use prometheus::{IntCounter, IntCounterVec, IntGaugeVec, Result};
use telemetry::registrar::{Registrar, level};

/// Labels of the series.
const LABELS: [&str; 2] = ["limit", "percent"];

/// Gauges and counters of thresholds.
pub struct ThresholdMetrics {
    reached: IntGaugeVec,
    noticed: IntCounterVec,
    /// Rounds that a store failure cut off.
    pub failed: IntCounter,
}

impl ThresholdMetrics {
    pub(super) fn new(metrics: &Registrar) -> Result<Self> {
        let new = Self {
            reached: metrics.gauge_family(
                "thresholds_reached",
                "Agents (for `plan`: accounts) whose highest threshold this is.",
                &LABELS,
            )?,
            noticed: metrics.counter_family(
                "thresholds_noticed_total",
                "Thresholds that this server noticed first.",
                &LABELS,
            )?,
            failed: metrics.counter(
                "threshold_rounds_failed_total",
                "Rounds over thresholds that a store failure cut off.",
            )?,
        };
        for (watched, threshold) in pairs() {
            new.reached.with_label_values(&labels(watched, threshold)).set(0);
            new.noticed.with_label_values(&labels(watched, threshold)).reset();
        }
        Ok(new)
    }

    /// Sets the number of limits that have reached each threshold, by limit and threshold.
    pub(crate) fn set(&self, count: impl Fn(Watched, Threshold) -> u64) {
        for (watched, threshold) in pairs() {
            let gauge = self.reached.with_label_values(&labels(watched, threshold));
            gauge.set(level(count(watched, threshold)));
        }
    }

    /// Counts a threshold that this server was the first to notice.
    pub(crate) fn count_notice(&self, watched: Watched, threshold: Threshold) {
        self.noticed.with_label_values(&labels(watched, threshold)).inc();
    }
}

fn pairs() -> impl Iterator<Item = (Watched, Threshold)> {
    let thresholds = |watched| {
        Threshold::ALL
            .into_iter()
            .map(move |threshold| (watched, threshold))
    };
    Watched::ALL.into_iter().flat_map(thresholds)
}

const fn labels(watched: Watched, threshold: Threshold) -> [&'static str; 2] {
    [watched.as_str(), threshold.as_str()]
}
