//! Trace of one request: its place in a distributed trace, the time of each stage, the owner of its key, and the one line of
//! log with which it ends. Every decision and every refusal ends in exactly one of the three `record_…` functions.

use crate::gate::Gate;
use crate::metrics::Stage;
use crate::reply::denied::Denied;
use crate::reply::refusal::RefusalKind;
use http::HeaderMap;
use std::time::{Duration, Instant};
use store::lookup::VirtualKeyOwner;
use telemetry::span::{self, Kind, Span, Value};
use telemetry::trace::{TRACEPARENT, TRACESTATE, Trace, new_span};

/// Trace of a request that is under way.
#[derive(Debug, Clone)]
pub struct RequestTrace {
    trace: Trace,
    began: Instant,
    /// The end of the last stage.
    last: Instant,
    /// When each stage began, from the beginning on, and how long it took. Written by [`RequestTrace::finish_stage`].
    stages: [Option<(Duration, Duration)>; Stage::COUNT],
    /// The span of the provider's request, which the provider is told.
    upstream_span: u64,
    /// Set once the key's owner is known.
    owner: Option<VirtualKeyOwner>,
}

/// The end of an approved call.
#[derive(Debug)]
pub struct Approved<'a> {
    /// The decision.
    pub id: &'a str,
    /// The run.
    pub run: &'a str,
    /// The model asked for.
    pub model: &'a str,
    /// What was estimated, in USD.
    pub estimate: &'a str,
    /// What is charged in the end, in USD.
    pub charged: &'a str,
    /// How the ledger calls it.
    pub how: &'static str,
    /// What became of the settlement.
    pub settlement: &'static str,
    /// The provider's status; 0 for none.
    pub status: u16,
    /// The provider's time.
    pub took: Duration,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl RequestTrace {
    /// Of a request whose head has arrived.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let now = Instant::now();
        Self {
            trace: Trace::of(headers),
            began: now,
            last: now,
            stages: [None; Stage::COUNT],
            upstream_span: 0,
            owner: None,
        }
    }

    /// Sets the owner of the request's key.
    pub fn set_owner(&mut self, owner: &VirtualKeyOwner) {
        self.owner = Some(owner.clone());
    }

    /// Ends a stage, which began where the one before ended, and records its time.
    pub fn finish_stage(&mut self, gate: &Gate, stage: Stage) {
        let now = Instant::now();
        let took = now.duration_since(self.last);
        self.stages[stage as usize] = Some((self.last.duration_since(self.began), took));
        self.last = now;
        gate.metrics.stage(stage, took);
    }

    /// Time that was not Tollgate's: the caller sending its body, the provider answering.
    #[must_use]
    pub fn outside(&self) -> Duration {
        self.stage_time(Stage::Receive) + self.stage_time(Stage::Upstream)
    }

    /// Time of a stage; zero for one that was not reached.
    #[must_use]
    pub fn stage_time(&self, stage: Stage) -> Duration {
        self.stages[stage as usize].map_or(Duration::ZERO, |(_, took)| took)
    }

    /// Continues the trace in the provider's request, when its spans are exported. Otherwise the caller's own headers pass
    /// as they came, like any other.
    pub fn propagate(&mut self, headers: &mut HeaderMap) {
        if self.trace.exported.is_some() {
            self.upstream_span = new_span();
            if let Some(header) = self.trace.header(self.upstream_span) {
                headers.insert(TRACEPARENT, header);
                // What belongs to no trace that we could read does not go along.
                if self.trace.parent == 0 {
                    headers.remove(TRACESTATE);
                }
            }
        }
    }

    fn account_and_agent(&self) -> (Option<&str>, Option<&str>) {
        let owner = self.owner.as_ref();
        (
            owner.map(VirtualKeyOwner::account),
            owner.map(VirtualKeyOwner::agent),
        )
    }

    /// The whole time until `now`, and what of it was spent here.
    fn times(&self, now: Instant) -> (u64, u64) {
        let all = now.duration_since(self.began);
        (micros(all), micros(all.saturating_sub(self.outside())))
    }

    /// Logs and exports an approved call.
    pub fn record_approval(&self, call: &Approved<'_>) {
        let (account, agent) = self.account_and_agent();
        // It was settled this moment.
        let (total, own) = self.times(self.last);
        tracing::info!(
            decision = "approved",
            decision.id = call.id,
            run.id = call.run,
            account.id = account,
            agent.id = agent,
            model = call.model,
            estimate.usd = call.estimate,
            charged.usd = call.charged,
            charged.how = call.how,
            settlement = call.settlement,
            upstream.status = call.status,
            upstream.ms = call.took.as_millis() as u64,
            duration.us = total,
            own.us = own,
            trace.id = %self.trace.id,
            "call settled"
        );
        let status = Value::Number(call.status.into());
        self.export(
            "approved",
            call.id,
            vec![("upstream.status", status)],
            call.status == 0,
        );
    }

    /// Counts, logs and exports a denied call.
    pub fn record_denial(&self, gate: &Gate, denied: &Denied) {
        let reason = denied.denial.reason();
        gate.metrics.denied(denied.denial);
        let (account, agent) = self.account_and_agent();
        let (total, own) = self.times(Instant::now());
        tracing::info!(
            decision = "denied",
            reason,
            decision.id = denied.id,
            run.id = denied.run_id.as_deref(),
            account.id = account,
            agent.id = agent,
            estimate.usd = denied.estimate.map(tracing::field::display),
            duration.us = total,
            own.us = own,
            trace.id = %self.trace.id,
            "call denied"
        );
        let reason = Value::Text(reason.to_owned());
        self.export("denied", &denied.id, vec![("tollgate.reason", reason)], false);
    }

    /// Counts, logs and exports a request that was at fault itself. Its own text is not logged.
    pub fn record_refusal(&self, gate: &Gate, kind: RefusalKind) {
        gate.metrics.refused(kind);
        let (account, agent) = self.account_and_agent();
        let (total, own) = self.times(Instant::now());
        tracing::info!(
            decision = "refused",
            reason = kind.code(),
            http.status = kind.status(),
            account.id = account,
            agent.id = agent,
            duration.us = total,
            own.us = own,
            trace.id = %self.trace.id,
            "request refused"
        );
        let reason = Value::Text(kind.code().to_owned());
        self.export("refused", "", vec![("tollgate.reason", reason)], false);
    }

    /// Hands over the spans: one of the request, and one of each stage in it.
    fn export(&self, decision: &str, id: &str, more: Vec<(&'static str, Value)>, failed: bool) {
        // The word of a caller without a key counts for nothing here: a flood of them would take the places of calls.
        let is_heard = self.owner.is_some() || !self.trace.by_caller;
        let Some(own) = self.trace.exported.filter(|_| is_heard) else {
            return;
        };
        let end = clock::now_nanos();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let start = end.saturating_sub(nanos(self.began.elapsed()));
        let text = |text: &str| Value::Text(text.to_owned());
        let mut attributes = vec![("tollgate.decision", text(decision))];
        if !id.is_empty() {
            attributes.push(("tollgate.decision.id", text(id)));
        }
        if let (Some(account), Some(agent)) = self.account_and_agent() {
            attributes.push(("tollgate.account.id", text(account)));
            attributes.push(("tollgate.agent.id", text(agent)));
        }
        attributes.extend(more);
        let mut spans = vec![Span {
            trace: self.trace.id.0,
            id: own,
            parent: self.trace.parent,
            name: "call",
            kind: Kind::Server,
            start,
            end,
            attributes,
            failed,
        }];
        for stage in Stage::ALL {
            let Some((at, took)) = self.stages[stage as usize] else {
                continue;
            };
            let is_upstream = stage == Stage::Upstream;
            spans.push(Span {
                trace: self.trace.id.0,
                id: if is_upstream {
                    self.upstream_span
                } else {
                    new_span()
                },
                parent: own,
                name: stage.as_str(),
                kind: if is_upstream { Kind::Client } else { Kind::Internal },
                start: start + nanos(at),
                end: start + nanos(at + took),
                attributes: Vec::new(),
                failed: is_upstream && failed,
            });
        }
        span::hand_over(spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tale_has_the_time_of_each_stage_and_whose_the_request_is() {
        let mut trace = RequestTrace::of(&HeaderMap::new());
        assert_eq!(trace.account_and_agent(), (None, None));
        let owner = VirtualKeyOwner::new("acct_1", "bot", "vk_1");
        trace.set_owner(&owner);
        assert_eq!(trace.account_and_agent(), (Some("acct_1"), Some("bot")));
        assert_eq!(
            (trace.stage_time(Stage::Upstream), trace.outside()),
            (Duration::ZERO, Duration::ZERO)
        );
        let ms = Duration::from_millis;
        trace.stages[Stage::Receive as usize] = Some((ms(1), ms(20)));
        trace.stages[Stage::Settle as usize] = Some((ms(21), ms(4)));
        trace.stages[Stage::Upstream as usize] = Some((ms(25), ms(300)));
        assert_eq!(trace.stage_time(Stage::Upstream), ms(300));
        assert_eq!(trace.outside(), ms(320), "the caller's time and the provider's");
        assert_eq!(trace.times(trace.began + ms(330)), (330_000, 10_000));
    }
}
