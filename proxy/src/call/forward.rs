//! Step 5: the one request to the provider (specification §4.4 step 6). It takes an [`Approval`] by value, so nothing
//! is sent without one and nothing is sent twice.

use super::body::Body;
use super::decide::Approval;
use super::hold::{HoldSettler, OpenHold};
use super::rejection::Rejection;
use super::stream::OpenStream;
use crate::account_usage::CallPermit;
use crate::large_bodies::LargeBodies;
use crate::metrics::Metrics;
use crate::upstream::failure::bad_answer;
use crate::upstream::headers::{AuthorizedHeaders, HeaderLines};
use crate::upstream::whole_answer::Expected;
use crate::upstream::{Failure, ReceivedAnswer, Streamed, Upstream, WholeAnswer, sent_key};
use domain::measured::Endpoint;
use secrecy::{ExposeSecret as _, SecretString};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A call that was sent and must be settled.
#[derive(Debug)]
pub struct SentCall {
    /// The charged estimate.
    pub hold: OpenHold,
    /// The provider's answer; never [`Failure::NotSent`].
    pub answer: Result<WholeAnswer, Failure>,
}

/// An approved call that is ready to be sent.
struct ReadyCall {
    hold: OpenHold,
    upstream: Arc<Upstream>,
    headers: AuthorizedHeaders,
    provider_key: Arc<SecretString>,
    permit: CallPermit,
}

/// Outcome of a sent call that requested a stream.
pub enum ForwardedStream {
    /// The provider answered without a stream, or did not answer.
    Whole(Box<SentCall>),
    /// The provider answers with a stream.
    Stream(Box<OpenStream>),
}

/// Forwards approved calls.
pub struct Forwarder {
    /// `proxy.stream_first_byte_ms`
    pub first_byte: Duration,
    /// Maximum of concurrent calls of one account.
    pub account_calls_max: usize,
    /// Releases the hold of a call that cannot be sent.
    pub holds: Arc<HoldSettler>,
    /// Counts failures.
    pub metrics: Arc<Metrics>,
    /// Reads large answers.
    pub large_answers: LargeBodies,
}

impl Forwarder {
    /// Sends the caller's exact bytes with the stored provider key to the approved upstream, on `path`.
    ///
    /// # Errors
    /// 503 if nothing could be sent: the stored key is not a valid header value, this machine has no descriptor, memory
    /// or port for a connection (decision D69), or the account has too many calls in progress. The estimate is then
    /// released.
    pub async fn forward(
        &self,
        approval: Approval,
        (endpoint, path): (Endpoint, &str),
        outbound: HeaderLines,
        body: Body,
    ) -> Result<SentCall, Rejection> {
        let ReadyCall {
            hold,
            upstream,
            headers,
            provider_key,
            permit,
        } = self.prepare(approval, outbound, &body).await?;
        let Body { bytes, reservation } = body;
        let answer = upstream.exchange(path, &headers, bytes, reservation).await;
        drop(permit);
        let (hold, answer) = self.require_sent(hold, answer).await?;
        let answer = self.inspect(endpoint, &upstream, answer, provider_key).await;
        Ok(SentCall { hold, answer })
    }

    /// Like [`forward`](Self::forward), for a call that requests a stream. Returns once the head of the answer is
    /// received.
    pub async fn forward_stream(
        &self,
        approval: Approval,
        (endpoint, path): (Endpoint, &str),
        outbound: HeaderLines,
        body: Body,
    ) -> Result<ForwardedStream, Rejection> {
        let ReadyCall {
            hold,
            upstream,
            headers,
            provider_key,
            permit,
        } = self.prepare(approval, outbound, &body).await?;
        let Body { bytes, reservation } = body;
        let began = Instant::now();
        let streamed = upstream.exchange_stream(path, &headers, bytes, reservation, self.first_byte);
        let (hold, streamed) = self.require_sent(hold, Box::pin(streamed).await).await?;
        let answer = match streamed {
            Ok(Streamed::Stream(mut answer)) => {
                sent_key::redact_head(&mut answer.headers, provider_key.expose_secret());
                return Ok(ForwardedStream::Stream(Box::new(OpenStream {
                    hold,
                    answer,
                    began,
                    provider_key,
                    permit,
                })));
            }
            Ok(Streamed::Whole(answer)) => Ok(answer),
            Err(failure) => Err(failure),
        };
        let answer = self.inspect(endpoint, &upstream, answer, provider_key).await;
        Ok(ForwardedStream::Whole(Box::new(SentCall { hold, answer })))
    }

    /// Adds the provider key, and counts the call against its account. Releases the hold if either fails.
    async fn prepare(
        &self,
        approval: Approval,
        outbound: HeaderLines,
        body: &Body,
    ) -> Result<ReadyCall, Rejection> {
        let upstream = Arc::clone(approval.upstream());
        let (hold, provider_key) = approval.into_parts();
        let Some(headers) = outbound.authorize(upstream.identity().auth, &provider_key) else {
            tracing::error!(
                decision.id = hold.name.allow_id,
                "the stored provider key cannot be sent"
            );
            return Err(self.holds.release_unsent(hold).await);
        };
        let account = body.reservation.account();
        match account.try_begin_call(self.account_calls_max) {
            Some(permit) => Ok(ReadyCall {
                hold,
                upstream,
                headers,
                provider_key,
                permit,
            }),
            None => {
                let busy = Failure::NotSent(io::ErrorKind::ResourceBusy);
                self.metrics.broke_off(&busy);
                Err(self.holds.release_unsent(hold).await)
            }
        }
    }

    /// Decodes an answer, reads its usage and removes keys from it. The call's deadline is over by then: what this
    /// takes is bounded by the longest answer.
    async fn inspect(
        &self,
        endpoint: Endpoint,
        upstream: &Upstream,
        answer: Result<ReceivedAnswer, Failure>,
        sent_key: Arc<SecretString>,
    ) -> Result<WholeAnswer, Failure> {
        let answer = answer?;
        let expected = Expected {
            endpoint,
            cost_counts: upstream.identity().reported_cost,
            bytes_max: upstream.max_response_bytes(),
        };
        if !answer.is_large() {
            return answer.inspect(sent_key.expose_secret(), expected);
        }
        let inspect = move || answer.inspect(sent_key.expose_secret(), expected);
        let inspected = self.large_answers.execute(inspect).await;
        inspected.unwrap_or(Err(bad_answer("its answer could not be read")))
    }

    /// Returns the answer with its hold, or releases the hold if nothing was sent.
    async fn require_sent<T>(
        &self,
        hold: OpenHold,
        answer: Result<T, Failure>,
    ) -> Result<(OpenHold, Result<T, Failure>), Rejection> {
        match answer {
            Err(failure @ Failure::NotSent(_)) => {
                self.metrics.broke_off(&failure);
                Err(self.holds.release_unsent(hold).await)
            }
            answer => Ok((hold, answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{ESTIMATE, Fixture, runs, text};
    use domain::denial::Denial;
    use http::HeaderMap;
    use store::call::authorize::AUTHORIZE;
    use store::call::settle::SETTLE;

    /// A header cannot carry some stored keys, such as one with a line end.
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
        let request = fixture.request();
        let outbound = request.upstream.headers(&HeaderMap::new(), 2, None);
        let sent =
            pipeline
                .forwarder
                .forward(approved.unwrap(), (Endpoint::Chat, "/"), outbound, fixture.body());
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
            [ESTIMATE.to_string().as_str(), "0", "unsent", "", "", ""]
        );
    }
}
