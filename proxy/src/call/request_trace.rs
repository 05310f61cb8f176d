//! Telemetry of one request: its position in a distributed trace, the time of each stage, the owner of its key, and its
//! log line. Each decision and each refusal is recorded by exactly one of the `record_…` functions.

use super::hold::Settlement;
use super::rejection::Rejection;
use super::request_id;
use crate::metrics::{Metrics, Stage};
use crate::reply::denied::Denied;
use crate::reply::refusal::RefusalKind;
use http::HeaderMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::lookup::VirtualKeyOwner;
use telemetry::LineAllowance;
use telemetry::span::{self, AttributeValue, Span, SpanKind};
use telemetry::trace::{ContinuedTrace, Trace, new_span};
use tracing::field::{DisplayValue, display};

/// Lines about requests that no rate bounds: refused ones, and denials without an audit entry of their own.
static UNBOUNDED: LineAllowance = LineAllowance::new();

/// Telemetry of a request in progress.
#[derive(Debug, Clone)]
pub struct RequestTrace {
    metrics: Arc<Metrics>,
    trace: Trace,
    /// Address of the connection, if it is known.
    peer: Option<IpAddr>,
    /// Address of the caller: that of the connection, or the one that a trusted proxy reports.
    client: Option<IpAddr>,
    /// See [`RequestTrace::request_id`].
    request_id: OnceLock<String>,
    began: Instant,
    /// When the last stage ended.
    last: Instant,
    /// Start of each stage, and its duration. Set by [`RequestTrace::end_stage`].
    stages: [Option<(Instant, Duration)>; Stage::COUNT],
    /// Span id in the headers of the provider's request. Set by [`RequestTrace::continue_at_provider`].
    upstream_span: u64,
    /// Set by [`RequestTrace::set_owner`].
    owner: Option<VirtualKeyOwner>,
}

/// Log fields of an approved and settled call.
#[derive(Debug)]
pub struct ApprovedCall<'a> {
    /// Decision id.
    pub id: &'a str,
    /// Run id.
    pub run: &'a str,
    /// Requested model.
    pub model: &'a str,
    /// In USD.
    pub estimate: &'a str,
    /// In USD.
    pub charged: &'a str,
    /// Method by which the cost was determined, as in the audit trail.
    pub outcome: &'static str,
    /// Outcome of the settlement.
    pub settlement: Settlement,
    /// Name of the upstream, as in metrics.
    pub upstream: &'a str,
    /// End of a streamed answer, as in the audit trail.
    pub stream_end: Option<&'static str>,
    /// HTTP status of the provider's answer; 0 if there was none.
    pub status: u16,
    /// Time from sending the request to the end of the provider's answer.
    pub upstream_time: Duration,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl RequestTrace {
    /// Starts the telemetry of a request whose head was received. `client` is the address of the caller behind `peer`.
    pub fn new(
        headers: &HeaderMap,
        peer: Option<IpAddr>,
        client: Option<IpAddr>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let now = Instant::now();
        Self {
            metrics: Arc::clone(metrics),
            trace: Trace::from_headers(headers),
            peer,
            client,
            request_id: request_id::sent(headers).map_or_else(OnceLock::new, OnceLock::from),
            began: now,
            last: now,
            stages: [None; Stage::COUNT],
            upstream_span: 0,
            owner: None,
        }
    }

    /// Returns the id of the request: the caller's `X-Request-Id` if it is well-formed, else a new one (decision D5).
    /// Tollgate's own answers carry it, and the log lines of refusals and denials. The provider's answers carry the
    /// provider's.
    pub fn request_id(&self) -> &str {
        self.request_id.get_or_init(request_id::generated)
    }

    /// Returns the caller's address for a log line: only if the key is not known, since nothing else of the line says
    /// who it was.
    fn stranger(&self) -> Option<DisplayValue<IpAddr>> {
        let is_stranger = self.owner.is_none();
        self.client.filter(|_| is_stranger).map(display)
    }

    /// Sets the owner of the request's key.
    pub fn set_owner(&mut self, owner: &VirtualKeyOwner) {
        self.owner = Some(owner.clone());
    }

    /// Ends a stage with its outcome. A failed stage is recorded only if [`Stage::records_failures`] says so.
    pub fn end_stage_with<T, E>(&mut self, stage: Stage, outcome: Result<T, E>) -> Result<T, E> {
        if outcome.is_ok() || stage.records_failures() {
            self.end_stage(stage);
        }
        outcome
    }

    /// Ends a stage and records its duration. A stage begins where the previous one ended.
    pub fn end_stage(&mut self, stage: Stage) {
        let now = Instant::now();
        let took = now.duration_since(self.last);
        self.stages[stage as usize] = Some((self.last, took));
        self.last = now;
        self.metrics.stage(stage, took);
    }

    /// Returns the time spent outside Tollgate: receiving the caller's body, and waiting for the provider.
    pub fn external_time(&self) -> Duration {
        self.stage_time(Stage::Body) + self.stage_time(Stage::Forward)
    }

    /// Like [`external_time`](Self::external_time), for a call with a streamed answer at the time when its head is
    /// written: the time since the last stage is the provider's.
    pub fn external_time_of_stream(&self) -> Duration {
        self.external_time() + self.last.elapsed()
    }

    /// Returns the duration of a stage; zero if it was not recorded.
    pub fn stage_time(&self, stage: Stage) -> Duration {
        self.stages[stage as usize].map_or(Duration::ZERO, |(_, took)| took)
    }

    /// Continues the trace in the provider's request if this request's spans are exported. `None` means that the
    /// caller's own trace headers are forwarded unchanged.
    pub fn continue_at_provider(&mut self) -> Option<ContinuedTrace> {
        self.trace.exported?;
        self.upstream_span = new_span();
        self.trace.continued(self.upstream_span)
    }

    fn account_and_agent(&self) -> (Option<&str>, Option<&str>) {
        let owner = self.owner.as_ref();
        (
            owner.map(VirtualKeyOwner::account),
            owner.map(VirtualKeyOwner::agent),
        )
    }

    /// Returns the time until `now`, and Tollgate's own share of it, in microseconds.
    fn times(&self, now: Instant) -> (u64, u64) {
        let all = now.duration_since(self.began);
        (micros(all), micros(all.saturating_sub(self.external_time())))
    }

    /// Logs and exports an approved call.
    pub fn record_approval(&self, call: &ApprovedCall<'_>) {
        let (account, agent) = self.account_and_agent();
        // The settlement is the last stage.
        let (total, own) = self.times(self.last);
        // The message as a text, and not as something to be formatted.
        tracing::info!(
            message = "call settled",
            decision = "approved",
            decision.id = call.id,
            run.id = call.run,
            account.id = account,
            agent.id = agent,
            model = call.model,
            estimate.usd = call.estimate,
            charged.usd = call.charged,
            charged.how = call.outcome,
            settlement = call.settlement.as_str(),
            stream.end = call.stream_end,
            upstream.name = call.upstream,
            upstream.status = call.status,
            upstream.ms = call.upstream_time.as_millis() as u64,
            duration.us = total,
            own.us = own,
            trace.id = self.trace.id.hex(),
        );
        let status = AttributeValue::Number(call.status.into());
        self.export(
            "approved",
            call.id,
            vec![("upstream.status", status)],
            call.status == 0,
        );
    }

    /// Counts, logs and exports a rejected request.
    pub fn record_rejection(&self, rejection: &Rejection) {
        match rejection {
            Rejection::Refused(refusal) => self.record_refusal(refusal.kind),
            Rejection::Denied(denied) => self.record_denial(denied),
        }
    }

    /// Returns the number of lines about unbounded requests of this account, or of this address, that were left out
    /// since the last one; `None` if this one is left out, too.
    fn unbounded_line_due(&self) -> Option<u64> {
        match self.account_and_agent().0 {
            Some(account) => UNBOUNDED.due(account),
            None => UNBOUNDED.due(self.peer),
        }
    }

    fn record_denial(&self, denied: &Denied) {
        let reason = denied.denial.reason();
        self.metrics.denied(denied.denial);
        let (account, agent) = self.account_and_agent();
        let (total, own) = self.times(Instant::now());
        let due = match denied.is_unrecorded {
            true => self.unbounded_line_due(),
            false => Some(0),
        };
        if let Some(left_out) = due {
            tracing::info!(
                decision = "denied",
                reason,
                decision.id = denied.id,
                run.id = denied.run_id.as_deref(),
                request.id = self.request_id(),
                account.id = account,
                agent.id = agent,
                client.address = self.stranger(),
                estimate.usd = denied.estimate.map(display),
                duration.us = total,
                own.us = own,
                left_out = (left_out > 0).then_some(left_out),
                trace.id = %self.trace.id,
                "call denied"
            );
        }
        let reason = AttributeValue::Text(reason.to_owned());
        self.export("denied", &denied.id, vec![("tollgate.reason", reason)], false);
    }

    /// Counts, logs and exports a refused request. Of the request's text only the id is logged.
    pub fn record_refusal(&self, kind: RefusalKind) {
        self.metrics.refused(kind);
        let (account, agent) = self.account_and_agent();
        let (total, own) = self.times(Instant::now());
        if let Some(left_out) = self.unbounded_line_due() {
            tracing::info!(
                decision = "refused",
                reason = kind.code(),
                http.status = kind.status(),
                request.id = self.request_id(),
                account.id = account,
                agent.id = agent,
                client.address = self.stranger(),
                duration.us = total,
                own.us = own,
                left_out = (left_out > 0).then_some(left_out),
                trace.id = %self.trace.id,
                "request refused"
            );
        }
        let reason = AttributeValue::Text(kind.code().to_owned());
        self.export("refused", "", vec![("tollgate.reason", reason)], false);
    }

    /// Exports the spans: one for the request and one for each stage.
    fn export(&self, decision: &str, id: &str, more: Vec<(&'static str, AttributeValue)>, failed: bool) {
        // A caller without a key cannot request an export: a flood of such requests would displace the spans of calls.
        let may_export = self.owner.is_some() || !self.trace.by_caller;
        let Some(own) = self.trace.exported.filter(|_| may_export) else {
            return;
        };
        let end = clock::now_nanos();
        let start = end.saturating_sub(nanos(self.began.elapsed()));
        let mut attributes = self.attributes(decision, id);
        attributes.extend(more);
        let mut spans = vec![Span {
            trace: self.trace.id.0,
            id: own,
            parent: self.trace.parent,
            name: "call",
            kind: SpanKind::Server,
            start,
            end,
            attributes,
            failed,
        }];
        spans.extend(Stage::ALL.iter().filter_map(|stage| {
            let (began, took) = self.stages[*stage as usize]?;
            let at = began.duration_since(self.began);
            let (id, kind, failed) = match stage {
                Stage::Forward => (self.upstream_span, SpanKind::Client, failed),
                _ => (new_span(), SpanKind::Internal, false),
            };
            Some(Span {
                trace: self.trace.id.0,
                id,
                parent: own,
                name: stage.as_str(),
                kind,
                start: start + nanos(at),
                end: start + nanos(at + took),
                attributes: Vec::new(),
                failed,
            })
        }));
        span::hand_over(spans);
    }

    /// Returns the attributes that the span of each request has, as far as they are known.
    fn attributes(&self, decision: &str, id: &str) -> Vec<(&'static str, AttributeValue)> {
        let text = |text: &str| AttributeValue::Text(text.to_owned());
        let mut attributes = vec![("tollgate.decision", text(decision))];
        if !id.is_empty() {
            attributes.push(("tollgate.decision.id", text(id)));
        }
        if let (Some(account), Some(agent)) = self.account_and_agent() {
            attributes.push(("tollgate.account.id", text(account)));
            attributes.push(("tollgate.agent.id", text(agent)));
        }
        attributes
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::upstreams::Providers;
    use telemetry::registrar::Registrar;

    #[test]
    fn a_trace_has_the_duration_of_each_stage_and_the_owner_of_the_key() {
        let registrar = Registrar::new("tollgate_proxy");
        let metrics = Arc::new(
            Metrics::new(
                &registrar,
                &Providers::new("openai".to_owned(), Default::default()),
            )
            .unwrap(),
        );
        let mut trace = RequestTrace::new(&HeaderMap::new(), None, None, &metrics);
        assert_eq!(trace.account_and_agent(), (None, None));
        let owner = VirtualKeyOwner::new("acct_1", "bot", "vk_1");
        trace.set_owner(&owner);
        assert_eq!(trace.account_and_agent(), (Some("acct_1"), Some("bot")));
        assert_eq!(
            (trace.stage_time(Stage::Forward), trace.external_time()),
            (Duration::ZERO, Duration::ZERO)
        );
        let (ms, began) = (Duration::from_millis, trace.began);
        trace.stages[Stage::Body as usize] = Some((began + ms(1), ms(20)));
        trace.stages[Stage::Settle as usize] = Some((began + ms(21), ms(4)));
        trace.stages[Stage::Forward as usize] = Some((began + ms(25), ms(300)));
        assert_eq!(trace.stage_time(Stage::Forward), ms(300));
        assert_eq!(
            trace.external_time(),
            ms(320),
            "the caller's time and the provider's"
        );
        assert_eq!(trace.times(trace.began + ms(330)), (330_000, 10_000));
    }
}
