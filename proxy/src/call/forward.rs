//! Step 5: the one request to the provider (specification §4.4 step 6). It takes an [`Approval`] by value, so nothing
//! is sent without one and nothing is sent twice.

use super::body::BufferedBody;
use super::call_request::CallRequest;
use super::decide::Approval;
use super::hold::{HoldSettler, OpenHold};
use super::rejection::Rejection;
use super::settle::SentCall;
use super::stream::OpenStream;
use crate::account_usage::CallPermit;
use crate::large_bodies::LargeBodies;
use crate::metrics::Metrics;
use crate::unsent_answers::UnsentAnswers;
use crate::upstream::failure::{NoAnswer, bad_answer};
use crate::upstream::header_lines::HeaderLines;
use crate::upstream::whole_answer::ExpectedAnswer;
use crate::upstream::{ProviderAnswer, ReceivedAnswer, Upstream, UpstreamFailure, WholeAnswer, sent_key};
use domain::measured::Endpoint;
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;

/// Outcome of a sent call.
#[expect(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub enum Forwarded {
    /// The provider answered as a whole, or not at all.
    Whole(SentCall),
    /// The provider answers with a stream, which the call requested.
    Stream(OpenStream),
}

/// Forwards approved calls.
pub struct Forwarder {
    /// Maximum of concurrent calls of one account.
    pub account_calls_max: usize,
    /// Releases the hold of a call that cannot be sent.
    pub holds: Arc<HoldSettler>,
    /// Counts failures.
    pub metrics: Arc<Metrics>,
    /// Reads large answers.
    pub large_answers: LargeBodies,
    /// Counts the memory of answers that callers take slowly.
    pub unsent_answers: Arc<UnsentAnswers>,
}

impl Forwarder {
    /// Sends the caller's exact bytes with the stored provider key to the approved upstream. Returns once the whole
    /// answer is received, or the head of a stream.
    ///
    /// # Errors
    /// 503 if nothing could be sent: the stored key is not a valid header value, this machine has no descriptor, memory
    /// or port for a connection (decision D69), or the account has too many calls in progress or too much memory of
    /// unsent answers. The estimate is then released.
    pub async fn forward(
        &self,
        approval: Approval,
        request: &CallRequest,
        outbound: HeaderLines,
        body: BufferedBody,
    ) -> Result<Forwarded, Rejection> {
        let (hold, upstream, provider_key) = approval.into_parts();
        let Some(headers) = outbound.authorize(upstream.identity().auth, &provider_key) else {
            tracing::error!(
                decision.id = hold.name.allow_id,
                "the stored provider key cannot be sent"
            );
            return Err(self.holds.release_unsent(hold).await);
        };
        let BufferedBody { bytes, reservation } = body;
        let account = reservation.account();
        let permit = account.try_begin_call(self.account_calls_max);
        let Some(permit) = permit.filter(|_| self.unsent_answers.admits(account)) else {
            return Err(self.not_sent(hold).await);
        };
        let path = upstream.identity().path(request.endpoint, &request.model);
        let answer = match request.stream {
            None => {
                let answer = upstream.exchange(&path, &headers, bytes, reservation).await;
                answer.map(ProviderAnswer::Whole)
            }
            // Boxed, so that other calls need no space for it.
            Some(_) => Box::pin(upstream.exchange_stream(&path, &headers, bytes, reservation)).await,
        };
        let answer = match answer {
            Ok(ProviderAnswer::Stream(mut answer)) => {
                sent_key::redact_head(&mut answer.headers, provider_key.expose_secret());
                return Ok(Forwarded::Stream(OpenStream {
                    hold,
                    answer,
                    provider_key,
                    permit,
                }));
            }
            Ok(ProviderAnswer::Whole(answer)) => {
                self.inspect(request.endpoint, &upstream, answer, provider_key, permit)
                    .await
            }
            Err(NoAnswer::Failed(failure)) => Err(failure),
            Err(NoAnswer::NotSent) => {
                drop(permit);
                return Err(self.not_sent(hold).await);
            }
        };
        Ok(Forwarded::Whole(SentCall { hold, answer }))
    }

    /// Counts a call that could not be sent, and releases its hold.
    fn not_sent(&self, hold: OpenHold) -> impl Future<Output = Rejection> {
        self.metrics.not_sent();
        self.holds.release_unsent(hold)
    }

    /// Decodes an answer, reads its usage and removes keys from it. The call's deadline no longer applies: the time of
    /// this step is bounded by the longest answer.
    async fn inspect(
        &self,
        endpoint: Endpoint,
        upstream: &Upstream,
        answer: ReceivedAnswer,
        sent_key: Arc<SecretString>,
        permit: CallPermit,
    ) -> Result<WholeAnswer, UpstreamFailure> {
        let expected = ExpectedAnswer {
            usage: upstream.identity().usage_reader(endpoint),
            bytes_max: upstream.max_response_bytes(),
        };
        let account = permit.end();
        let mut inspected = if answer.is_large() {
            let inspect = move || answer.inspect(sent_key.expose_secret(), expected);
            let inspected = self.large_answers.execute(&account.large_answers, inspect).await;
            inspected.unwrap_or(Err(bad_answer("its answer could not be read")))?
        } else {
            answer.inspect(sent_key.expose_secret(), expected)?
        };
        inspected.body = self.unsent_answers.count(account, inspected.body);
        Ok(inspected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{ESTIMATE, Fixture, runs, text};
    use crate::upstream::sent_body::SentBody;
    use domain::denial::Denial;
    use http::HeaderMap;
    use store::call::authorize::AUTHORIZE;
    use store::call::settle::SETTLE;

    /// A header cannot carry some stored keys, such as one with a line end.
    #[tokio::test]
    async fn a_provider_key_that_is_no_header_value_sends_and_costs_nothing() {
        let fixture = Fixture::new().await;
        assert!(fixture.health.is_trusted().await);
        let approval = fixture.approval("sk-a\nb: c");
        fixture.on_command(move |command| match () {
            () if runs(command, &AUTHORIZE) => Some(approval.clone()),
            () => runs(command, &SETTLE).then(|| text("settled")),
        });
        let pipeline = fixture.pipeline();
        let approved = pipeline.decider.decide(&fixture.key(), &fixture.request()).await;
        let request = fixture.request();
        let outbound = request
            .upstream
            .headers(&HeaderMap::new(), SentBody::from_length(2), None);
        let forwarder = &pipeline.forwarder;
        let forwarded = forwarder.forward(approved.unwrap(), &request, outbound, fixture.body());
        let Err(Rejection::Denied(denied)) = forwarded.await else {
            panic!("it must be denied");
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
