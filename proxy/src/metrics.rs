//! The edge's metrics. The help texts stand beside the names; both are a contract with dashboards and alerts.

use crate::reply::refusal::RefusalKind;
use prometheus::{
    Encoder, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};
use shared::domain::denial::Denial;
use shared::domain::money::Nanos;
use shared::store::script::settle::{Settle, Settled};

/// Seconds at which the histograms of Tollgate's own time are cut.
const OWN_TIME_BUCKETS: [f64; 11] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5,
];

/// All metrics of the edge.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    approved: IntCounterVec,
    denied: IntCounterVec,
    refused: IntCounterVec,
    settlements: IntCounterVec,
    estimated_nanos: IntCounter,
    charged_nanos: IntCounter,
    announced_retries: IntCounter,
    own_time: Histogram,
    in_flight: IntGauge,
    pending: IntGauge,
    ready: IntGauge,
}

impl Metrics {
    /// Registers everything.
    ///
    /// # Errors
    /// When a name is malformed or taken twice, which a test would show.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let vec = |name: &str, help: &str, label: &str| {
            let counter = IntCounterVec::new(Opts::new(name, help), &[label])?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            prometheus::Result::Ok(gauge)
        };
        let own_time = Histogram::with_opts(
            HistogramOpts::new(
                "tollgate_proxy_own_seconds",
                "Time a request spent in Tollgate, upstream excluded.",
            )
            .buckets(OWN_TIME_BUCKETS.to_vec()),
        )?;
        registry.register(Box::new(own_time.clone()))?;
        Ok(Self {
            approved: vec(
                "tollgate_proxy_approved_total",
                "Approved calls, by what the provider answered.",
                "upstream",
            )?,
            denied: vec(
                "tollgate_proxy_denied_total",
                "Denied calls, by reason.",
                "reason",
            )?,
            refused: vec(
                "tollgate_proxy_refused_total",
                "Refused requests, by error code.",
                "code",
            )?,
            settlements: vec(
                "tollgate_proxy_settlements_total",
                "Settlements, by what the store found.",
                "result",
            )?,
            estimated_nanos: counter(
                "tollgate_proxy_estimated_nanos_total",
                "Nano-USD estimated for approved calls.",
            )?,
            charged_nanos: counter(
                "tollgate_proxy_charged_nanos_total",
                "Nano-USD charged in the end.",
            )?,
            announced_retries: counter(
                "tollgate_proxy_announced_retries_total",
                "Requests that an SDK announced as retries (x-stainless-retry-count above 0).",
            )?,
            in_flight: gauge("tollgate_proxy_in_flight", "Requests in flight.")?,
            pending: gauge(
                "tollgate_proxy_pending",
                "Settlements and voids that wait for the store.",
            )?,
            ready: gauge("tollgate_proxy_ready", "1 when calls can be decided.")?,
            own_time,
            registry,
        })
    }

    /// An approved call came to its end.
    pub fn approved(&self, estimate: Nanos, upstream: &str) {
        self.approved.with_label_values(&[upstream]).inc();
        self.estimated_nanos.inc_by(estimate.get());
    }

    /// A denial.
    pub fn denied(&self, denial: Denial) {
        self.denied.with_label_values(&[denial.reason()]).inc();
    }

    /// A refusal.
    pub fn refused(&self, kind: RefusalKind) {
        self.refused.with_label_values(&[kind.code()]).inc();
    }

    /// The store took a settlement.
    pub fn settled(&self, settled: Settled, settle: &Settle) {
        let result = match settled {
            Settled::Done => "done",
            Settled::Missing => "missing",
            Settled::Mismatch => "mismatch",
        };
        self.settlements.with_label_values(&[result]).inc();
        if matches!(settled, Settled::Done) {
            self.charged_nanos.inc_by(settle.cost.get());
        } else {
            tracing::warn!(
                decision.id = settle.name.allow_id,
                result,
                "a settlement met no hold of its own"
            );
        }
    }

    /// A request that an SDK repeats by itself.
    pub fn announced_retry(&self) {
        self.announced_retries.inc();
    }

    /// Time that one request spent in Tollgate.
    pub fn own_time(&self, seconds: f64) {
        self.own_time.observe(seconds);
    }

    /// The exposition text, with the state of this moment.
    pub fn text(&self, in_flight: usize, pending: usize, ready: bool) -> Vec<u8> {
        self.in_flight.set(i64::try_from(in_flight).unwrap_or(i64::MAX));
        self.pending.set(i64::try_from(pending).unwrap_or(i64::MAX));
        self.ready.set(i64::from(ready));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "the metrics cannot be written");
        }
        text
    }
}
