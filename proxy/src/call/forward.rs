//! Step 5: the one request to the provider (specification §4.4 step 6). It takes an [`Approval`] by value, so nothing
//! is sent without one and nothing is sent twice.

use super::body::Body;
use super::decide::Approval;
use super::hold::{HoldSettler, OpenHold};
use super::rejection::Rejection;
use crate::metrics::Metrics;
use crate::upstream::{Answer, Failure, Upstream, headers};
use http::HeaderMap;
use std::io;
use std::sync::Arc;

/// A call that was sent, and is to be settled.
#[derive(Debug)]
pub struct SentCall {
    /// The charged estimate.
    pub hold: OpenHold,
    /// The provider's answer; never [`Failure::NotSent`].
    pub answer: Result<Answer, Failure>,
}

/// Forwards approved calls.
pub struct Forwarder {
    /// Sends the request.
    pub upstream: Arc<Upstream>,
    /// Releases the hold of a call that cannot be sent.
    pub holds: Arc<HoldSettler>,
    /// Counts failures.
    pub metrics: Arc<Metrics>,
}

impl Forwarder {
    /// Builds the headers of the provider's request, but for the provider key: those of the caller that are on the list
    /// of `upstream.forward_headers`.
    ///
    /// # Errors
    /// 503 when there are too many. Nothing is charged then.
    pub fn headers(&self, caller: &HeaderMap, length: usize) -> Result<HeaderMap, Rejection> {
        let host = &self.upstream.target().authority;
        let outbound = self.upstream.forward_list().outbound(caller, host, length);
        outbound.ok_or_else(Rejection::unavailable)
    }

    /// Sends the caller's exact bytes with the stored provider key.
    ///
    /// # Errors
    /// 503 when nothing could be sent: the stored key is no header value, this machine has no descriptor, memory or
    /// port for a connection (decision D69), or the account has too many calls in progress. The estimate is released
    /// then.
    pub async fn forward(
        &self,
        approval: Approval,
        mut outbound: HeaderMap,
        body: Body,
    ) -> Result<SentCall, Rejection> {
        let (hold, provider_key) = approval.into_parts();
        if headers::authorize(&mut outbound, &provider_key).is_none() {
            tracing::error!(
                decision.id = hold.name.allow_id,
                "the stored provider key cannot be sent"
            );
            return Err(self.holds.release_unsent(hold).await);
        }
        let Body { bytes, reservation } = body;
        let permit = reservation
            .account()
            .try_begin_call(self.upstream.account_calls_max());
        let answer = match permit {
            Some(_permit) => self.upstream.exchange(&outbound, bytes, reservation).await,
            None => Err(Failure::NotSent(io::ErrorKind::ResourceBusy)),
        };
        match answer {
            Err(failure @ Failure::NotSent(_)) => {
                self.metrics.broke_off(&failure);
                Err(self.holds.release_unsent(hold).await)
            }
            answer => Ok(SentCall { hold, answer }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{ESTIMATE, Fixture, runs, text};
    use domain::denial::Denial;
    use store::call::authorize::AUTHORIZE;
    use store::call::settle::SETTLE;

    /// A stored key that no header can carry, such as one with a line end.
    #[tokio::test]
    async fn a_provider_key_that_is_no_header_value_sends_and_costs_nothing() {
        let fixture = Fixture::new().await;
        assert!(fixture.health.is_usable().await);
        let approval = fixture.approval("sk-a\nb: c");
        fixture.on_command(move |command| match () {
            () if runs(command, &AUTHORIZE) => Some(approval.clone()),
            () => runs(command, &SETTLE).then(|| text("settled")),
        });
        let pipeline = fixture.pipeline();
        let approved = pipeline.decider.decide(&fixture.key(), &fixture.request()).await;
        let outbound = pipeline.forwarder.headers(&HeaderMap::new(), 2).unwrap();
        let sent = pipeline
            .forwarder
            .forward(approved.unwrap(), outbound, fixture.body());
        let sent = sent.await;
        let Err(Rejection::Denied(denied)) = sent else {
            panic!("{sent:?}");
        };
        assert_eq!(denied.denial, Denial::ServiceUnavailable);
        assert!(!fixture.was_provider_called().await, "nothing is sent");
        let settled = fixture.arguments(&SETTLE);
        assert_eq!(settled.len(), 1);
        assert_eq!(
            settled[0][1..],
            [ESTIMATE.to_string().as_str(), "0", "unsent", ""]
        );
    }
}
