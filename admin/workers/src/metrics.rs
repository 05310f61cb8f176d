//! Metrics of the workers. The help texts stand beside the names; both are a contract with dashboards and alerts.

mod open_items;
mod room;
mod thresholds;

pub use open_items::OpenItemMetrics;
pub use room::RoomMetrics;
pub use thresholds::ThresholdMetrics;

use domain::mode::Mode;
use prometheus::{Gauge, IntCounter, IntGauge};
use std::time::Duration;
use telemetry::registrar::Registrar;

/// A worker that goes round and round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// Moves old entries of the audit trail to the archive.
    Archiver,
    /// Delivers what is in transit between accounts.
    Transit,
    /// Counts what is open.
    GaugeCollector,
    /// Puts checkpoints into the archive.
    Checkpointer,
    /// Names the accounts that take too much of the store.
    Guard,
    /// Moves old intents to the archive.
    IntentArchiver,
    /// Finds overdue holds.
    Reaper,
    /// Seals the audit trail.
    Sealer,
    /// Notices who is near a limit.
    ThresholdWatcher,
}

impl Worker {
    /// All values, in the order of their declaration.
    const ALL: [Self; 9] = [
        Self::Archiver,
        Self::Transit,
        Self::GaugeCollector,
        Self::Checkpointer,
        Self::Guard,
        Self::IntentArchiver,
        Self::Reaper,
        Self::Sealer,
        Self::ThresholdWatcher,
    ];

    /// Returns the value of the label. Two are older names, which dashboards and alerts know.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Archiver => "archiver",
            Self::Transit => "carrier",
            Self::GaugeCollector => "census",
            Self::Checkpointer => "checkpointer",
            Self::Guard => "guard",
            Self::IntentArchiver => "intent_archiver",
            Self::Reaper => "reaper",
            Self::Sealer => "sealer",
            Self::ThresholdWatcher => "threshold_watcher",
        }
    }
}

/// Counters and gauges of the workers of this server.
pub struct WorkerMetrics {
    rounds: Vec<Gauge>,
    /// What is open in the store.
    pub open_items: OpenItemMetrics,
    /// How much of the store accounts take, and which are refused.
    pub room: RoomMetrics,
    /// Who is near a limit.
    pub thresholds: ThresholdMetrics,
    /// Holds that passed their deadline and stay charged.
    pub holds_kept: IntCounter,
    /// Sweeps over the buckets that a store failure cut off.
    pub sweeps_failed: IntCounter,
    /// Sweeps over all buckets that came to their end.
    pub sweeps_done: IntCounter,
    /// What left one account and was delivered in another by the worker.
    pub transits_delivered: IntCounter,
    /// Deliveries by the worker that failed and are tried again.
    pub transits_failed: IntCounter,
    /// What is still in transit after the worker's last round, [`WorkerMetrics::transits_without_room`] aside.
    pub transits_waiting: IntGauge,
    /// Money in transit whose receiving wallet has no room for it, in the order of [`Mode::ALL`].
    pub transits_without_room: Vec<IntGauge>,
    /// Audit entries sealed by this server.
    pub entries_sealed: IntCounter,
    /// Chains, or rounds over all, that could not be sealed.
    pub seals_failed: IntCounter,
    /// Entries that this server saw and could not seal yet.
    pub entries_unsealed: IntGauge,
    /// For how long the oldest of them has waited.
    pub unsealed_for: Gauge,
    /// Signed checkpoints put into the archive.
    pub checkpoints: IntCounter,
    /// Checkpoints that could not be taken or put there.
    pub checkpoints_failed: IntCounter,
    /// Checkpoints that were not moved on: the chain does not hold what the last one says.
    pub checkpoints_refused: IntCounter,
    /// Chains whose last checkpoint failed or was refused.
    pub checkpoints_failing: IntGauge,
    /// Audit entries that this server moved to the archive.
    pub entries_archived: IntCounter,
    /// Chains, or rounds over all, that could not be archived.
    pub archiving_failed: IntCounter,
    /// Chains that had something to archive at the last look.
    pub archiving_waiting: IntGauge,
    /// 1 while the store answers and may be trusted.
    pub store_sane: IntGauge,
    /// 1 while changes of money are confirmed as safe before they are answered.
    pub store_durable: IntGauge,
    /// 1 while a failover of the store may take back what was acknowledged.
    pub store_exposed: IntGauge,
}

impl WorkerMetrics {
    /// Registers them, all at zero.
    pub fn new(metrics: &Registrar) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str| metrics.counter(name, help);
        Ok(Self {
            rounds: metrics.fractions(
                "worker_last_round_timestamp_seconds",
                "End of a worker's last whole round, in seconds since 1970; 0 before the first.",
                "worker",
                Worker::ALL.map(Worker::as_str),
            )?,
            open_items: OpenItemMetrics::new(metrics)?,
            room: RoomMetrics::new(metrics)?,
            thresholds: ThresholdMetrics::new(metrics)?,
            holds_kept: counter("holds_kept_total", "Holds that passed their deadline.")?,
            sweeps_failed: counter("sweeps_failed_total", "Sweeps that a store failure cut off.")?,
            sweeps_done: counter("sweeps_done_total", "Sweeps for overdue holds.")?,
            transits_delivered: counter(
                "transits_delivered_total",
                "Deliveries between accounts after a crash or a store failure.",
            )?,
            transits_failed: counter(
                "transits_failed_total",
                "Deliveries between accounts that failed and are tried again.",
            )?,
            transits_waiting: metrics.gauge(
                "transits_waiting",
                "Money and notices still in transit after the worker's last round, but for what waits for room in a wallet.",
            )?,
            transits_without_room: metrics.gauges(
                "transits_without_room",
                "Money in transit whose receiving wallet has no room for it; tried again after at most five minutes.",
                "mode",
                Mode::ALL.map(Mode::as_str),
            )?,
            entries_sealed: counter(
                "audit_entries_sealed_total",
                "Audit entries that this server sealed.",
            )?,
            seals_failed: counter(
                "audit_seals_failed_total",
                "Audit chains that could not be sealed; tried again.",
            )?,
            entries_unsealed: metrics.gauge(
                "audit_unsealed_entries",
                "Audit entries that this server could not seal yet.",
            )?,
            unsealed_for: metrics
                .fraction("audit_unsealed_seconds", "Longest wait of a chain for its seal.")?,
            checkpoints: counter("audit_checkpoints_total", "Checkpoints put into the archive.")?,
            checkpoints_failed: counter(
                "audit_checkpoints_failed_total",
                "Checkpoints that failed; tried again.",
            )?,
            checkpoints_refused: counter(
                "audit_checkpoints_refused_total",
                "Checkpoints refused, since the chain does not hold what the last one says.",
            )?,
            checkpoints_failing: metrics.gauge(
                "audit_checkpoints_failing",
                "Chains whose last checkpoint failed or was refused.",
            )?,
            entries_archived: counter(
                "audit_entries_archived_total",
                "Audit entries that this server archived.",
            )?,
            archiving_failed: counter(
                "archiving_failed_total",
                "Chains that could not be archived; tried again.",
            )?,
            archiving_waiting: metrics
                .gauge("archiving_waiting_chains", "Chains with something to archive.")?,
            store_sane: metrics.gauge("store_sane", "1 while the store may be trusted.")?,
            store_durable: metrics.gauge(
                "store_durable",
                "1 while changes of money are confirmed by a disk or replicas (store.durability).",
            )?,
            store_exposed: metrics.gauge(
                "store_exposed",
                "1 while the store has replicas and store.durability waits for none.",
            )?,
        })
    }

    /// A worker came to the end of a whole round.
    pub fn round(&self, worker: Worker) {
        let now = Duration::from_millis(clock::now_ms());
        self.rounds[worker as usize].set(now.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_has_its_series_from_the_start() {
        let registrar = Registrar::new("tollgate_admin");
        let metrics = WorkerMetrics::new(&registrar).unwrap();
        metrics.holds_kept.inc();
        metrics.round(Worker::Sealer);
        let text = registrar.text_after(|| {}).unwrap();
        for line in [
            "tollgate_admin_holds_kept_total 1",
            r#"tollgate_admin_worker_last_round_timestamp_seconds{worker="reaper"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains(r#"seconds{worker="sealer"} 0"#), "{text}");
        for (at, worker) in Worker::ALL.into_iter().enumerate() {
            assert_eq!(worker as usize, at, "{worker:?}");
        }
    }
}
