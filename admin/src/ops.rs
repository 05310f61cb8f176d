//! The ops listener: `/metrics`, `/livez`, `/readyz` (decision D57), and the metrics themselves.

mod webhooks;

use crate::routes::method_label;
use crate::serve::App;
use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};
use std::sync::Arc;
use std::time::Duration;
use webhooks::WebhookMetrics;

/// Upper ends of the duration buckets, in seconds.
const DURATIONS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Everything that is measured.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
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
    /// Webhooks.
    pub webhooks: WebhookMetrics,
    /// Signed checkpoints put into the archive.
    pub checkpoints: IntCounter,
    /// Checkpoints that could not be taken or put there.
    pub checkpoints_failed: IntCounter,
    /// Checkpoints that were not moved on: the chain does not hold what the last one says.
    pub checkpoints_refused: IntCounter,
    /// Audit entries that this server moved to the archive.
    pub entries_archived: IntCounter,
    /// Chains, or rounds over all, that could not be archived.
    pub archiving_failed: IntCounter,
    /// Requests from blocked addresses.
    pub blocked: IntCounter,
    /// 1 while the store answers and may be trusted.
    pub store_sane: IntGauge,
}

impl Metrics {
    /// All at zero.
    ///
    /// # Errors
    /// When two metrics have one name, which a test excludes.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| IntCounter::new(name, help);
        let requests = Opts::new("tollgate_admin_requests_total", "Management requests answered.");
        let durations = HistogramOpts::new(
            "tollgate_admin_request_seconds",
            "Time from a management request's head to its answer.",
        );
        let metrics = Self {
            requests: IntCounterVec::new(requests, &["method", "route", "status"])?,
            durations: HistogramVec::new(durations.buckets(DURATIONS.into()), &["method", "route"])?,
            holds_kept: counter(
                "tollgate_admin_holds_kept_total",
                "Holds that passed their deadline and stay charged at their estimate.",
            )?,
            sweeps_failed: counter(
                "tollgate_admin_sweeps_failed_total",
                "Sweeps for overdue holds that a store failure cut off.",
            )?,
            sweeps_done: counter(
                "tollgate_admin_sweeps_done_total",
                "Sweeps for overdue holds over all buckets.",
            )?,
            transits_delivered: counter(
                "tollgate_admin_transits_delivered_total",
                "Money and notices between accounts that the worker delivered after a crash or a store failure.",
            )?,
            transits_failed: counter(
                "tollgate_admin_transits_failed_total",
                "Deliveries between accounts that failed and are tried again.",
            )?,
            transits_waiting: IntGauge::new(
                "tollgate_admin_transits_waiting",
                "Money and notices still in transit after the worker's last round.",
            )?,
            entries_sealed: counter(
                "tollgate_admin_audit_entries_sealed_total",
                "Audit entries sealed by the worker of this server.",
            )?,
            seals_failed: counter(
                "tollgate_admin_audit_seals_failed_total",
                "Audit chains that could not be sealed; tried again.",
            )?,
            webhooks: WebhookMetrics::new(&registry)?,
            checkpoints: counter(
                "tollgate_admin_audit_checkpoints_total",
                "Signed checkpoints of audit chains put into the archive.",
            )?,
            checkpoints_failed: counter(
                "tollgate_admin_audit_checkpoints_failed_total",
                "Checkpoints that could not be taken or put into the archive; tried again.",
            )?,
            checkpoints_refused: counter(
                "tollgate_admin_audit_checkpoints_refused_total",
                "Checkpoints that were not moved on, since the chain does not hold what the last one says: it was changed.",
            )?,
            entries_archived: counter(
                "tollgate_admin_audit_entries_archived_total",
                "Audit entries that the worker of this server moved to the archive.",
            )?,
            archiving_failed: counter(
                "tollgate_admin_archiving_failed_total",
                "Chains that could not be archived; tried again. Nothing left the store.",
            )?,
            blocked: counter("tollgate_admin_blocked_total", "Requests from blocked addresses.")?,
            store_sane: IntGauge::new(
                "tollgate_admin_store_sane",
                "1 while the store answers and may be trusted.",
            )?,
            registry,
        };
        metrics.registry.register(Box::new(metrics.requests.clone()))?;
        metrics.registry.register(Box::new(metrics.durations.clone()))?;
        metrics.registry.register(Box::new(metrics.holds_kept.clone()))?;
        metrics
            .registry
            .register(Box::new(metrics.sweeps_failed.clone()))?;
        metrics.registry.register(Box::new(metrics.sweeps_done.clone()))?;
        for counter in [
            &metrics.transits_delivered,
            &metrics.transits_failed,
            &metrics.entries_sealed,
            &metrics.seals_failed,
            &metrics.checkpoints,
            &metrics.checkpoints_failed,
            &metrics.checkpoints_refused,
            &metrics.entries_archived,
            &metrics.archiving_failed,
            &metrics.blocked,
        ] {
            metrics.registry.register(Box::new(counter.clone()))?;
        }
        for gauge in [&metrics.transits_waiting, &metrics.store_sane] {
            metrics.registry.register(Box::new(gauge.clone()))?;
        }
        Ok(metrics)
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

    /// The text of `/metrics`.
    fn text(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// The service of the ops listener.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(app)
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    match app.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    let unread = || {
        let reason = || "the blocked addresses were not read yet".to_owned();
        (!app.blocked.is_read()).then(reason)
    };
    match app.health.reason().or_else(unread) {
        None => "ok\n".into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_exported_under_our_prefix() {
        let metrics = Metrics::new().unwrap();
        metrics.request(&Method::GET, "/agents", StatusCode::OK, Duration::from_millis(2));
        metrics.holds_kept.inc();
        let text = metrics.text().unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.starts_with("tollgate_admin_"), "{line}");
        }
        let line = r#"tollgate_admin_requests_total{method="GET",route="/agents",status="200"} 1"#;
        assert!(text.contains(line), "{text}");
        assert!(text.contains("tollgate_admin_holds_kept_total 1"), "{text}");
    }
}
