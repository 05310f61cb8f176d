//! The admin server's metrics. The help texts stand beside the names; both are a contract with dashboards and alerts, and
//! docs/reference/observability.md lists them.

mod census;
mod connections;
mod limited;
mod webhooks;

pub use census::CensusMetrics;
pub use connections::ConnectionMetrics;
pub use limited::LimitedMetrics;
pub use webhooks::WebhookMetrics;

use crate::routes::method_label;
use axum::http::{Method, StatusCode};
use domain::intent::Reason;
use prometheus::{Gauge, HistogramVec, IntCounter, IntCounterVec, IntGauge};
use std::time::Duration;
use telemetry::process::ProcessMetrics;
use telemetry::registrar::{Registrar, level};
use telemetry::span::SpanMetrics;
use telemetry::store::StoreMetrics;
use telemetry::tables::TableMetrics;

/// Upper ends of the duration buckets, in seconds.
const DURATIONS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// A worker that goes round and round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// Moves old entries of the audit trail to the archive.
    Archiver,
    /// Delivers what is in transit between accounts.
    Carrier,
    /// Counts what is open.
    Census,
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
}

impl Worker {
    const ALL: [&'static str; 8] = [
        "archiver",
        "carrier",
        "census",
        "checkpointer",
        "guard",
        "intent_archiver",
        "reaper",
        "sealer",
    ];
}

/// What became of an attempt to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Somebody is in.
    Done,
    /// Wrong password or code, or nobody of that name.
    Wrong,
    /// Too many attempts before.
    Locked,
}

impl Login {
    const ALL: [&'static str; 3] = ["done", "wrong", "locked"];
}

/// Everything that is measured.
pub struct Metrics {
    registrar: Registrar,
    requests: IntCounterVec,
    durations: HistogramVec,
    rounds: Vec<Gauge>,
    logins: Vec<IntCounter>,
    spends: IntCounterVec,
    process: ProcessMetrics,
    spans: SpanMetrics,
    body_bytes: IntGauge,
    body_bytes_max: IntGauge,
    /// Connections of the management listener and of the ops listener.
    pub connections: [ConnectionMetrics; 2],
    /// The store, which a task of its own looks at.
    pub store: StoreMetrics,
    /// The tables that are read again.
    pub tables: TableMetrics,
    /// What the census counts.
    pub census: CensusMetrics,
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
    /// What is still in transit after the worker's last round.
    pub transits_waiting: IntGauge,
    /// Audit entries sealed by this server.
    pub entries_sealed: IntCounter,
    /// Chains, or rounds over all, that could not be sealed.
    pub seals_failed: IntCounter,
    /// Entries that this server saw and could not seal yet.
    pub entries_unsealed: IntGauge,
    /// For how long the oldest of them has waited.
    pub unsealed_for: Gauge,
    /// Webhooks.
    pub webhooks: WebhookMetrics,
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
    /// Requests refused by a limit that holds for every plan.
    pub limited: LimitedMetrics,
    /// Requests from blocked addresses.
    pub blocked: IntCounter,
    /// 1 while the store answers and may be trusted.
    pub store_sane: IntGauge,
    /// 1 while changes of money are confirmed as safe before they are answered.
    pub store_durable: IntGauge,
    /// 1 while a failover of the store may take back what was acknowledged.
    pub store_exposed: IntGauge,
}

impl Metrics {
    /// All at zero.
    ///
    /// # Errors
    /// When two metrics have one name, which a test excludes.
    pub fn new() -> prometheus::Result<Self> {
        let metrics = Registrar::new("tollgate_admin");
        let counter = |name: &str, help: &str| metrics.counter(name, help);
        Ok(Self {
            requests: metrics.counter_family(
                "requests_total",
                "Management requests answered.",
                &["method", "route", "status"],
            )?,
            durations: metrics.histogram_family(
                "request_seconds",
                "Time from a management request's head to its answer.",
                &DURATIONS,
                &["method", "route"],
            )?,
            rounds: metrics.fractions(
                "worker_last_round_timestamp_seconds",
                "When a worker last came to the end of a whole round, in seconds since 1970; 0 before the first.",
                "worker",
                Worker::ALL,
            )?,
            logins: metrics.counters(
                "logins_total",
                "Attempts to sign in: done, wrong (password, code or name), locked (too many before).",
                "result",
                Login::ALL,
            )?,
            spends: spends(&metrics)?,
            process: ProcessMetrics::new(&metrics)?,
            spans: SpanMetrics::new(&metrics)?,
            body_bytes: metrics.gauge("body_memory_bytes", "Memory that request bodies have taken.")?,
            body_bytes_max: metrics.gauge(
                "body_memory_max_bytes",
                "How much they may (admin.max_buffered_bytes).",
            )?,
            connections: ConnectionMetrics::both(&metrics)?,
            store: StoreMetrics::new(&metrics)?,
            tables: TableMetrics::new(&metrics)?,
            census: CensusMetrics::new(&metrics)?,
            webhooks: WebhookMetrics::new(&metrics)?,
            holds_kept: counter(
                "holds_kept_total",
                "Holds that passed their deadline and stay charged at their estimate.",
            )?,
            sweeps_failed: counter(
                "sweeps_failed_total",
                "Sweeps for overdue holds that a store failure cut off.",
            )?,
            sweeps_done: counter("sweeps_done_total", "Sweeps for overdue holds over all buckets.")?,
            transits_delivered: counter(
                "transits_delivered_total",
                "Money and notices between accounts that the worker delivered after a crash or a store failure.",
            )?,
            transits_failed: counter(
                "transits_failed_total",
                "Deliveries between accounts that failed and are tried again.",
            )?,
            transits_waiting: metrics.gauge(
                "transits_waiting",
                "Money and notices still in transit after the worker's last round.",
            )?,
            entries_sealed: counter(
                "audit_entries_sealed_total",
                "Audit entries sealed by the worker of this server.",
            )?,
            seals_failed: counter(
                "audit_seals_failed_total",
                "Audit chains that could not be sealed; tried again.",
            )?,
            entries_unsealed: metrics.gauge(
                "audit_unsealed_entries",
                "Audit entries that this server saw and could not seal yet.",
            )?,
            unsealed_for: metrics.fraction(
                "audit_unsealed_seconds",
                "How long the chain that waits longest for its seal has done so.",
            )?,
            checkpoints: counter(
                "audit_checkpoints_total",
                "Signed checkpoints of audit chains put into the archive.",
            )?,
            checkpoints_failed: counter(
                "audit_checkpoints_failed_total",
                "Checkpoints that could not be taken or put into the archive; tried again.",
            )?,
            checkpoints_refused: counter(
                "audit_checkpoints_refused_total",
                "Checkpoints that were not moved on, since the chain does not hold what the last one says: it was changed.",
            )?,
            checkpoints_failing: metrics.gauge(
                "audit_checkpoints_failing",
                "Chains whose last checkpoint failed or was refused.",
            )?,
            entries_archived: counter(
                "audit_entries_archived_total",
                "Audit entries that the worker of this server moved to the archive.",
            )?,
            archiving_failed: counter(
                "archiving_failed_total",
                "Chains that could not be archived; tried again. Nothing left the store.",
            )?,
            archiving_waiting: metrics.gauge(
                "archiving_waiting_chains",
                "Chains that had something to archive at the last look.",
            )?,
            limited: LimitedMetrics::new(&metrics)?,
            blocked: counter("blocked_total", "Requests from blocked addresses.")?,
            store_sane: metrics.gauge("store_sane", "1 while the store answers and may be trusted.")?,
            store_durable: metrics.gauge(
                "store_durable",
                "1 while changes of money are confirmed by a disk or by replicas before they are answered (store.durability).",
            )?,
            store_exposed: metrics.gauge(
                "store_exposed",
                "1 while the store has replicas and store.durability waits for none, so that a failover may take back acknowledged changes of money.",
            )?,
            registrar: metrics,
        })
    }

    /// Counts one answered request.
    pub fn request(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let method = method_label(method);
        self.requests
            .with_label_values(&[method, route, status.as_str()])
            .inc();
        self.durations
            .with_label_values(&[method, route])
            .observe(took.as_secs_f64());
    }

    /// A worker came to the end of a whole round.
    pub fn round(&self, worker: Worker) {
        let now = Duration::from_millis(clock::now_ms());
        self.rounds[worker as usize].set(now.as_secs_f64());
    }

    /// Somebody tried to sign in.
    pub fn login(&self, login: Login) {
        self.logins[login as usize].inc();
    }

    /// A spend was settled, or waits for approval, or was blocked for a reason.
    pub fn spend(&self, result: &str) {
        self.spends.with_label_values(&[result]).inc();
    }

    /// Notes the memory that request bodies have taken, and may take.
    pub fn body_memory(&self, taken: usize, max: usize) {
        self.body_bytes.set(level(taken));
        self.body_bytes_max.set(level(max));
    }

    /// The text of `/metrics`.
    ///
    /// # Errors
    /// When the values cannot be written, which they can.
    pub fn text(&self) -> prometheus::Result<String> {
        self.registrar.text_after(|| {
            self.process.look();
            self.spans.refresh();
            self.store.refresh();
        })
    }
}

/// Spends by result; every reason has its series from the start.
fn spends(metrics: &Registrar) -> prometheus::Result<IntCounterVec> {
    let family = metrics.counter_family(
        "spends_total",
        "Spends that were decided: settled, pending_approval, or the reason for which they were blocked.",
        &["result"],
    )?;
    for reason in Reason::ALL {
        family.with_label_values(&[reason.as_str()]);
    }
    for result in ["settled", "pending_approval"] {
        family.with_label_values(&[result]);
    }
    Ok(family)
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::tables::Table;

    #[test]
    fn every_metric_is_exported_under_a_known_prefix() {
        let metrics = Metrics::new().unwrap();
        metrics.request(&Method::GET, "/agents", StatusCode::OK, Duration::from_millis(2));
        metrics.holds_kept.inc();
        metrics.round(Worker::Sealer);
        metrics.login(Login::Locked);
        metrics.spend("injection_detected");
        metrics.tables.read_again(Table::Prices, false);
        let text = metrics.text().unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let known = ["tollgate_admin_", "process_", "tollgate_build_info{"];
            assert!(known.iter().any(|prefix| line.starts_with(prefix)), "{line}");
        }
        for line in [
            r#"tollgate_admin_requests_total{method="GET",route="/agents",status="200"} 1"#,
            "tollgate_admin_holds_kept_total 1",
            r#"tollgate_admin_logins_total{result="locked"} 1"#,
            r#"tollgate_admin_spends_total{result="injection_detected"} 1"#,
            r#"tollgate_admin_spends_total{result="settled"} 0"#,
            r#"tollgate_admin_table_reads_total{result="failed",table="prices"} 1"#,
            r#"tollgate_admin_worker_last_round_timestamp_seconds{worker="reaper"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains(r#"seconds{worker="sealer"} 0"#), "{text}");
    }
}
