//! The admin server's metrics. The help texts stand beside the names; both are a contract with dashboards and alerts, and
//! docs/reference/observability.md lists them.

mod connections;
mod limited;

pub use connections::ConnectionMetrics;
pub use limited::LimitedMetrics;

use crate::routes::method_label;
use axum::http::{Method, StatusCode};
use domain::intent::Reason;
use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGauge};
use std::time::Duration;
use telemetry::process::ProcessMetrics;
use telemetry::registrar::{Registrar, level};
use telemetry::span::SpanMetrics;
use telemetry::store::StoreMetrics;
use telemetry::tables::TableMetrics;

/// Upper ends of the duration buckets, in seconds.
const DURATIONS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

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
    /// Requests refused by a limit that holds for every plan.
    pub limited: LimitedMetrics,
    /// Requests from blocked addresses.
    pub blocked: IntCounter,
}

impl Metrics {
    /// All at zero.
    ///
    /// # Errors
    /// When two metrics have one name, which a test excludes.
    pub fn new(metrics: Registrar) -> prometheus::Result<Self> {
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
            limited: LimitedMetrics::new(&metrics)?,
            blocked: counter("blocked_total", "Requests from blocked addresses.")?,
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
        let metrics = Metrics::new(Registrar::new("tollgate_admin")).unwrap();
        metrics.request(&Method::GET, "/agents", StatusCode::OK, Duration::from_millis(2));
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
            r#"tollgate_admin_logins_total{result="locked"} 1"#,
            r#"tollgate_admin_spends_total{result="injection_detected"} 1"#,
            r#"tollgate_admin_spends_total{result="settled"} 0"#,
            r#"tollgate_admin_table_reads_total{result="failed",table="prices"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
