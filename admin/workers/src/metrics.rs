//! Metrics of the workers. Names and help texts are a contract with dashboards and alerts.

mod open_items;
mod room;
mod thresholds;

pub use open_items::OpenItemMetrics;
pub use room::RoomMetrics;
pub use thresholds::ThresholdMetrics;

use domain::mode::Mode;
use std::time::Duration;

domain::words! {
    /// A worker with rounds.
    pub enum Worker {
        /// Moves old entries of the audit trail to the archive.
        Archiver = "archiver",
        /// Delivers money in transit between accounts.
        Transit = "carrier",
        /// Counts open items.
        GaugeCollector = "census",
        /// Writes checkpoints to the archive.
        Checkpointer = "checkpointer",
        /// Writes the list of refused accounts.
        Guard = "guard",
        /// Moves old intents to the archive.
        IntentArchiver = "intent_archiver",
        /// Keeps price tables in the archive.
        PriceKeeper = "price_keeper",
        /// Ends overdue holds.
        Reaper = "reaper",
        /// Seals the audit trail.
        Sealer = "sealer",
        /// Records reached thresholds of limits.
        ThresholdWatcher = "threshold_watcher",
    }
}

telemetry::metrics! {
    /// Counters and gauges of the workers of this server.
    pub struct WorkerMetrics {
        /// End of a worker's last whole round, in seconds since 1970; 0 before the first. While `sealer` and
        /// `checkpointer` wait, whose pauses are settings, it is the present time.
        rounds: fractions("worker_last_round_timestamp_seconds", "worker", Worker::ALL.map(Worker::as_str)),
        /// Open holds and spends of the whole store.
        pub open_items: OpenItemMetrics,
        /// The accounts' shares of the store, and the refused accounts.
        pub room: RoomMetrics,
        /// Limits that are nearly reached.
        pub thresholds: ThresholdMetrics,
        /// Holds that passed their deadline.
        pub holds_kept: counter("holds_kept_total"),
        /// Sweeps that a store failure cut off.
        pub sweeps_failed: counter("sweeps_failed_total"),
        /// Sweeps for overdue holds.
        pub sweeps_done: counter("sweeps_done_total"),
        /// Deliveries between accounts after a crash or a store failure.
        pub transits_delivered: counter("transits_delivered_total"),
        /// Deliveries between accounts that failed and are tried again.
        pub transits_failed: counter("transits_failed_total"),
        /// Money and notices still in transit after the worker's last round, except those that wait for room in a
        /// wallet.
        pub transits_waiting: gauge("transits_waiting"),
        /// Money in transit whose receiving wallet has no room for it; tried again after at most five minutes.
        pub transits_without_room: gauges("transits_without_room", "mode", Mode::ALL.map(Mode::as_str)),
        /// Audit entries that this server sealed.
        pub entries_sealed: counter("audit_entries_sealed_total"),
        /// Audit chains that could not be sealed; tried again.
        pub seals_failed: counter("audit_seals_failed_total"),
        /// Sealed lines of audit trails that cannot be read, since somebody changed the store.
        pub entries_unreadable: counter("audit_unreadable_entries_total"),
        /// Audit entries that this server could not seal yet, of chains whose end it could read.
        pub entries_unsealed: gauge("audit_unsealed_entries"),
        /// Longest wait of a chain for its seal.
        pub unsealed_for: fraction("audit_unsealed_seconds"),
        /// Checkpoints put into the archive.
        pub checkpoints: counter("audit_checkpoints_total"),
        /// Checkpoints that failed; tried again.
        pub checkpoints_failed: counter("audit_checkpoints_failed_total"),
        /// Checkpoints refused, since the chain does not contain the last one's end.
        pub checkpoints_refused: counter("audit_checkpoints_refused_total"),
        /// Chains whose last checkpoint failed or was refused.
        pub checkpoints_failing: gauge("audit_checkpoints_failing"),
        /// Audit entries that this server archived.
        pub entries_archived: counter("audit_entries_archived_total"),
        /// Chains that could not be archived; tried again.
        pub archiving_failed: counter("archiving_failed_total"),
        /// Chains with something to archive.
        pub archiving_waiting: gauge("archiving_waiting_chains"),
        /// 1 while the store may be trusted.
        pub store_sane: gauge("store_sane"),
        /// 1 while changes of money are confirmed by a disk or replicas (store.durability).
        pub store_durable: gauge("store_durable"),
        /// 1 where store.durability is aof or replicas(n): without it, changes of money are refused or not confirmed.
        pub store_durability_required: gauge("store_durability_required"),
        /// 1 while the store has replicas and store.durability waits for none.
        pub store_exposed: gauge("store_exposed"),
    }
}

impl WorkerMetrics {
    /// Records the end of a worker's round.
    pub fn record_round(&self, worker: Worker) {
        let now = Duration::from_millis(clock::now_ms());
        self.rounds[worker as usize].set(now.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::registrar::Registrar;

    #[test]
    fn every_worker_has_its_series_from_the_start() {
        let registrar = Registrar::new("tollgate_admin");
        let metrics = WorkerMetrics::new(&registrar).unwrap();
        metrics.holds_kept.inc();
        metrics.record_round(Worker::Sealer);
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
