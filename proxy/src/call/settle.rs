//! Step 6: the charge moves from the estimate to the real cost, before the answer ends (specification "Proxy spend
//! ledger").

use super::bill::{Bill, EndedExchange};
use super::call_request::CallRequest;
use super::hold::{HoldSettler, OpenHold};
use super::prepared_reply::PreparedReply;
use super::request_trace::{ApprovedCall, RequestTrace};
use crate::metrics::{Metrics, Stage, UpstreamResult};
use crate::reply::approved::{self, ApprovalHeaders};
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::upstream::{UpstreamFailure, WholeAnswer};
use domain::entry::HoldOutcome;
use domain::measured::CallEnd;
use std::sync::Arc;

/// A call that was sent and answered as a whole, or not at all. It must be settled.
#[derive(Debug)]
pub struct SentCall {
    /// The charged estimate.
    pub hold: OpenHold,
    /// The provider's answer.
    pub answer: Result<WholeAnswer, UpstreamFailure>,
}

/// A call whose settlement was accepted by the store or is queued for a retry.
#[derive(Debug)]
pub struct SettledCall {
    /// Decision id.
    pub allow_id: String,
    /// Final charge with its basis.
    pub bill: Bill,
    /// Estimate in USD, for the log and for headers.
    pub estimated_usd: String,
    /// Charge in USD, for the log and for the caller.
    pub charged_usd: String,
}

/// Settles sent calls, and records them in metrics, log and trace.
pub struct CallSettler {
    /// Settles the hold.
    pub holds: Arc<HoldSettler>,
    /// Counts calls.
    pub metrics: Arc<Metrics>,
}

impl CallSettler {
    /// Settles a call whose answer is whole, and prepares the reply.
    pub async fn settle_and_answer(
        &self,
        request: &CallRequest,
        sent: SentCall,
        trace: &mut RequestTrace,
    ) -> PreparedReply {
        let SentCall { hold, answer } = sent;
        trace.end_stage(Stage::Forward);
        let (end, result) = end_of(&answer);
        // A time-out needs no counter of its own: the result of the call, counted below, shows it.
        if let Err(UpstreamFailure::Unreachable(at)) = answer {
            self.metrics.broke_off(at);
        }
        let exchange = EndedExchange {
            end,
            result,
            status: answer.as_ref().ok().map(|answer| answer.status),
            took: trace.stage_time(Stage::Forward),
            stream: None,
        };
        let bill = Bill::from_whole(request, hold.estimate, &answer);
        let settled = self.settle(request, hold, bill, exchange, trace).await;
        let mut reply = match answer {
            Ok(answer) => approved::reply(answer.status, answer.headers, answer.body),
            Err(failure) => refusal_of(&failure).reply(),
        };
        ApprovalHeaders {
            allow_id: &settled.allow_id,
            run_id: &request.run.id,
            estimate: &settled.estimated_usd,
            actual: settled.bill.actual().map(|_| &*settled.charged_usd),
            charged_failure: end != CallEnd::Completed && settled.bill.outcome == HoldOutcome::Estimated,
        }
        .set_on(&mut reply);
        PreparedReply {
            reply,
            stream: None,
            external_time: trace.external_time(),
        }
    }

    /// Charges the bill in place of the estimate, and records the call in metrics, log and trace.
    pub async fn settle(
        &self,
        request: &CallRequest,
        hold: OpenHold,
        bill: Bill,
        exchange: EndedExchange,
        trace: &mut RequestTrace,
    ) -> SettledCall {
        self.count(request, &hold, &bill, &exchange);
        let measured = bill.measured(request, &exchange);
        let (allow_id, estimated_usd) = (hold.name.allow_id.clone(), hold.estimate.usd());
        let settlement = self
            .holds
            .settle(hold, bill.cost, bill.outcome, Some(measured))
            .await;
        trace.end_stage(Stage::Settle);
        let charged_usd = bill.cost.usd();
        trace.record_approval(&ApprovedCall {
            id: &allow_id,
            run: &request.run.id,
            model: &request.model,
            estimate: &estimated_usd,
            charged: &charged_usd,
            outcome: bill.outcome.as_str(),
            settlement,
            upstream: &request.upstream.identity().provider,
            stream_end: exchange.stream.map(|_| exchange.end.as_str()),
            status: exchange.status.map_or(0, |status| status.as_u16()),
            upstream_time: exchange.took,
        });
        SettledCall {
            allow_id,
            bill,
            estimated_usd,
            charged_usd,
        }
    }

    /// Counts a call before the ledger shows its charge, so that an observer of the charge finds the call in the
    /// metrics.
    fn count(&self, request: &CallRequest, hold: &OpenHold, bill: &Bill, exchange: &EndedExchange) {
        let EndedExchange {
            end, result, took, ..
        } = *exchange;
        self.metrics.approved(hold.estimate, bill.actual(), result);
        let upstream = request.upstream.identity().index;
        self.metrics.upstreams.answered(upstream, result, took);
        if let Some(error) = bill.bad_usage {
            self.metrics.upstreams.ignored_usage(upstream);
            let upstream = &request.upstream.identity().provider;
            let id = &hold.name.allow_id;
            tracing::warn!(decision.id = %id, %upstream, model = %request.model, %error, "a reported usage is ignored");
        }
        match exchange.stream {
            Some(_) => self.metrics.streams.ended(end, bill.usage.is_some(), took),
            None => self.metrics.whole_answer(took),
        }
    }
}

/// Returns how an exchange with a whole answer, or with none, ended: for the audit trail, and as counted in metrics.
fn end_of(answer: &Result<WholeAnswer, UpstreamFailure>) -> (CallEnd, UpstreamResult) {
    match answer.as_ref().map(|answer| answer.status) {
        Ok(status) if status.is_success() => (CallEnd::Completed, UpstreamResult::Success),
        Ok(status) if status.is_redirection() => (CallEnd::Failed, UpstreamResult::Redirect),
        Ok(status) if status.is_client_error() => (CallEnd::Refused, UpstreamResult::ClientError),
        Ok(_) => (CallEnd::Failed, UpstreamResult::ServerError),
        Err(UpstreamFailure::Timeout) => (CallEnd::TotalTimeout, UpstreamResult::Timeout),
        Err(UpstreamFailure::LateHead) => (CallEnd::FirstByteTimeout, UpstreamResult::Timeout),
        Err(UpstreamFailure::Unreachable(_)) => (CallEnd::Failed, UpstreamResult::Unreachable),
    }
}

fn refusal_of(failure: &UpstreamFailure) -> Refusal {
    match failure {
        UpstreamFailure::Timeout => Refusal::new(
            RefusalKind::UpstreamTimeout,
            "The provider gave no whole answer in time. The estimate stays charged.",
        ),
        UpstreamFailure::LateHead => Refusal::new(
            RefusalKind::UpstreamTimeout,
            "The provider began no answer in time. The estimate stays charged.",
        ),
        UpstreamFailure::Unreachable(_) => Refusal::new(
            RefusalKind::UpstreamUnreachable,
            "The provider could not be reached or broke off. The estimate stays charged.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::failure::BreakOff;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    fn answer(status: u16) -> Result<WholeAnswer, UpstreamFailure> {
        Ok(WholeAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            reported: None,
        })
    }

    #[test]
    fn each_result_has_its_own_label() {
        for (status, end, result) in [
            (200, CallEnd::Completed, UpstreamResult::Success),
            (302, CallEnd::Failed, UpstreamResult::Redirect),
            (404, CallEnd::Refused, UpstreamResult::ClientError),
            (429, CallEnd::Refused, UpstreamResult::ClientError),
            (500, CallEnd::Failed, UpstreamResult::ServerError),
            (100, CallEnd::Failed, UpstreamResult::ServerError),
        ] {
            assert_eq!(end_of(&answer(status)), (end, result), "{status}");
        }
        for (failure, end, result, kind) in [
            (
                UpstreamFailure::Timeout,
                CallEnd::TotalTimeout,
                UpstreamResult::Timeout,
                RefusalKind::UpstreamTimeout,
            ),
            (
                UpstreamFailure::LateHead,
                CallEnd::FirstByteTimeout,
                UpstreamResult::Timeout,
                RefusalKind::UpstreamTimeout,
            ),
            (
                UpstreamFailure::Unreachable(BreakOff::Connect),
                CallEnd::Failed,
                UpstreamResult::Unreachable,
                RefusalKind::UpstreamUnreachable,
            ),
        ] {
            assert_eq!(refusal_of(&failure).kind, kind);
            assert_eq!(end_of(&Err(failure)), (end, result));
        }
    }
}
