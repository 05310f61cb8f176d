//! Counters and histograms of the edge. Names and help texts are a contract with dashboards and alerts, and
//! docs/reference/observability.md lists them. Every series exists from the start and is held as a handle, so recording
//! needs no look-up.

pub mod connections;
pub mod ledger;
pub mod streams;
pub mod upstreams;

use crate::reply::refusal::RefusalKind;
use crate::upstream::failure::BreakOff;
use domain::denial::Denial;
use domain::money::Nanos;
use ledger::LedgerMetrics;
use settings::upstreams::Providers;
use std::time::Duration;
use streams::StreamMetrics;
use telemetry::registrar::Registrar;
use telemetry::tables::TableMetrics;
use upstreams::{ANSWER_TIME, UpstreamMetrics};

pub use upstreams::UpstreamResult;

/// Bucket bounds of Tollgate's own time and of the stages of a call, in seconds.
const OWN_TIME: [f64; 11] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5,
];

domain::words! {
    /// A stage of a call, as metrics and spans name it.
    pub enum Stage {
        /// From the received head to the owner of the key.
        KeyOwner = "resolve",
        /// The caller sends the body.
        Body = "receive",
        /// Body and headers are parsed, and the estimate is computed.
        Parse = "read",
        /// The store decides.
        Decide = "decide",
        /// The provider answers.
        Forward = "upstream",
        /// The ledger moves to the real cost.
        Settle = "settle",
    }
}

impl Stage {
    /// Length of [`Stage::ALL`].
    pub const COUNT: usize = Self::ALL.len();

    /// Returns whether a failed stage is also recorded: the caller's time counts whether or not the body is complete,
    /// and a denial is a decision. The other stages are recorded only for calls that continue.
    pub const fn records_failures(self) -> bool {
        matches!(self, Self::Body | Self::Decide)
    }
}

/// Label of an exchange that sent nothing.
const NOT_SENT: &str = "local";
/// Labels of failed exchanges: [`NOT_SENT`], and those of [`BreakOff`]. No exchange is counted as `write`, since a
/// provider that closes the connection while the request is sent may have answered; operators' dashboards may use it.
const BROKE_OFF: [&str; 7] = ["resolve", NOT_SENT, "connect", "write", "head", "body", "odd"];

domain::words! {
    /// A limit of every plan (decision D71) that denied a call as `rate_limited`.
    pub enum RateLimitedBy {
        /// The account's budget of runs.
        Runs = "runs",
        /// The account may make no records.
        StoreShare = "store_share",
    }
}

telemetry::metrics! {
    /// Counters and times of calls.
    #[derive(Debug)]
    struct CallMetrics {
        /// Approved calls, by the provider's answer.
        approved: counters("approved_total", "upstream", UpstreamResult::ALL.map(UpstreamResult::as_str)),
        /// Denied requests, by reason: calls, and requests for the list of models.
        denied: counters("denied_total", "reason", Denial::ALL.iter().map(|denial| denial.reason())),
        /// Refused requests, by error code.
        refused: counters("refused_total", "code", RefusalKind::ALL.iter().map(|kind| kind.code())),
        /// Calls denied as rate_limited on any plan: runs (the budget of runs), store_share (the guard).
        limited: counters("limited_total", "limit", RateLimitedBy::ALL.map(RateLimitedBy::as_str)),
        /// Requests that an SDK announced as retries (x-stainless-retry-count).
        announced_retries: counter("announced_retries_total"),
        /// Time of a request in Tollgate, without the caller's sending and the provider.
        own_time: histogram("own_seconds", &OWN_TIME),
        /// Time of calls in each stage: resolve (the key), receive (the body), read (the estimate), decide, upstream,
        /// settle.
        stages: histograms("stage_seconds", &OWN_TIME, "stage", Stage::ALL.map(Stage::as_str)),
        /// Time from the provider's request to its whole answer, of answers that are no streams.
        upstream_time: histogram("upstream_seconds", &ANSWER_TIME),
        /// Exchanges that broke off: resolve, local (no descriptor, memory, port or share of the connections: 503),
        /// connect, write (always 0), head, body, odd (no HTTP, or too long). Timeouts are in approved_total.
        broke_off: counters("upstream_failures_total", "stage", BROKE_OFF),
    }
}

/// Counters and histograms of the edge.
#[derive(Debug)]
pub struct Metrics {
    calls: CallMetrics,
    /// Money of approved calls.
    pub ledger: LedgerMetrics,
    pub streams: StreamMetrics,
    /// Answers of each upstream.
    pub upstreams: UpstreamMetrics,
    /// Plans and prices read again.
    pub tables: TableMetrics,
}

impl Metrics {
    /// Registers all metrics.
    pub fn new(metrics: &Registrar, providers: &Providers) -> prometheus::Result<Self> {
        Ok(Self {
            calls: CallMetrics::new(metrics)?,
            ledger: LedgerMetrics::new(metrics)?,
            streams: StreamMetrics::new(metrics)?,
            upstreams: UpstreamMetrics::new(metrics, providers.names())?,
            tables: TableMetrics::new(metrics)?,
        })
    }

    /// Records an approved call whose exchange with the provider ended.
    pub fn approved(&self, estimate: Nanos, actual: Option<Nanos>, ended: UpstreamResult) {
        self.calls.approved[ended as usize].inc();
        self.ledger.approved(estimate, actual);
    }

    /// Records the time of an answer that is not a stream. [`StreamMetrics`] records the times of streams.
    pub fn whole_answer(&self, took: Duration) {
        self.calls.upstream_time.observe(took.as_secs_f64());
    }

    /// Records a call that could not be sent from here.
    pub fn not_sent(&self) {
        self.broke_off_at(NOT_SENT);
    }

    /// Records an exchange with the provider that broke off.
    pub fn broke_off(&self, at: BreakOff) {
        self.broke_off_at(at.as_str());
    }

    fn broke_off_at(&self, stage: &str) {
        if let Some(at) = BROKE_OFF.iter().position(|known| *known == stage) {
            self.calls.broke_off[at].inc();
        }
    }

    /// Records a denied request.
    pub fn denied(&self, denial: Denial) {
        self.calls.denied[denial as usize].inc();
    }

    /// Records a denial by a limit of every plan.
    pub fn limited(&self, limit: RateLimitedBy) {
        self.calls.limited[limit as usize].inc();
    }

    /// Records a refused request.
    pub fn refused(&self, kind: RefusalKind) {
        self.calls.refused[kind as usize].inc();
    }

    /// Records a request that an SDK announced as a retry.
    pub fn announced_retry(&self) {
        self.calls.announced_retries.inc();
    }

    /// Records Tollgate's own time for one request.
    pub fn own_time(&self, seconds: f64) {
        self.calls.own_time.observe(seconds);
    }

    /// Records the duration of a stage.
    pub fn stage(&self, stage: Stage, took: Duration) {
        self.calls.stages[stage as usize].observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::tables::Table;

    #[test]
    fn each_count_lands_on_its_own_label() {
        let registrar = Registrar::new("tollgate_proxy");
        let providers = Providers::new("openai".to_owned(), Default::default());
        let metrics = Metrics::new(&registrar, &providers).unwrap();
        for denial in Denial::ALL {
            metrics.denied(*denial);
        }
        for kind in RefusalKind::ALL {
            metrics.refused(*kind);
        }
        metrics.refused(RefusalKind::RequestTimeout);
        metrics.stage(Stage::Settle, Duration::from_micros(150));
        let (estimate, actual) = (Nanos::new(1000).unwrap(), Nanos::new(200));
        metrics.approved(estimate, actual, UpstreamResult::Timeout);
        metrics.broke_off(BreakOff::Resolve);
        metrics.broke_off(BreakOff::BadAnswer("it sent no head"));
        metrics.not_sent();
        metrics.tables.read_again(Table::Prices, false);
        let text = registrar.text().unwrap();
        for line in [
            r#"tollgate_proxy_denied_total{reason="plan_limit"} 1"#,
            r#"tollgate_proxy_refused_total{code="request_timeout"} 2"#,
            r#"tollgate_proxy_refused_total{code="upstream_timeout"} 1"#,
            r#"tollgate_proxy_stage_seconds_bucket{stage="settle",le="0.0002"} 1"#,
            r#"tollgate_proxy_stage_seconds_count{stage="decide"} 0"#,
            r#"tollgate_proxy_approved_total{upstream="timeout"} 1"#,
            r#"tollgate_proxy_actual_ratio_bucket{le="0.25"} 1"#,
            r#"tollgate_proxy_upstream_failures_total{stage="resolve"} 1"#,
            r#"tollgate_proxy_upstream_failures_total{stage="odd"} 1"#,
            r#"tollgate_proxy_upstream_failures_total{stage="local"} 1"#,
            r#"tollgate_proxy_table_reads_total{result="failed",table="prices"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        for (at, denial) in Denial::ALL.iter().enumerate() {
            assert_eq!(*denial as usize, at, "{denial:?}");
        }
        for (at, kind) in RefusalKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at, "{kind:?}");
        }
        for (at, result) in UpstreamResult::ALL.into_iter().enumerate() {
            assert_eq!(result as usize, at, "{result:?}");
        }
        for (at, limit) in RateLimitedBy::ALL.into_iter().enumerate() {
            assert_eq!(limit as usize, at, "{limit:?}");
        }
    }
}
