//! The life of one call, in the order of specification §4.4. Each step is a file, and a function from the result of one
//! step to that of the next:
//!
//! 1. [`credential`]: the virtual key's form (401); [`key_owner`]: its owner (503, 401)
//! 2. [`body`]: the body, within bounds of size, time and memory (413, 408)
//! 3. [`call_request`]: the parsed headers and body (400), and the estimate
//! 4. [`decide`]: one execution of [`authorize`]'s script. Only this step makes an `Approval`
//! 5. [`forward`]: the one request to the provider. Only this step accepts an `Approval`
//! 6. [`settle`]: the ledger moves to the real cost before the answer ends
//!
//! A call whose answer is a [`stream`] of events has its own versions of steps 5 and 6.
//!
//! Once decided, a call [runs to completion](run_to_completion) even if the caller disconnects. [`request_trace`]
//! records metrics, log line and trace of a call.

pub mod authorize;
pub mod bill;
pub mod body;
pub mod call_request;
pub mod count;
pub mod credential;
pub mod decide;
pub mod denials;
pub mod forward;
pub mod handoff;
pub mod hold;
pub mod key_owner;
pub mod lost_writes_log;
pub mod prepared_reply;
pub mod rejection;
mod request_id;
pub mod request_trace;
pub mod run_to_completion;
pub mod settle;
pub mod stream;

use crate::admission::RequestAdmission;
use crate::key_owners::known_key::KnownKey;
use crate::large_bodies::{LargeBodies, is_large};
use crate::metrics::Stage;
use crate::protected_request::{ProtectedRequest, RequestLimits};
use crate::upstream::header_lines::HeaderLines;
use crate::upstream::sent_body::SentBody;
use body::{BodyReader, BufferedBody, DeclaredLength, may_be_large};
use call_request::{CallRequest, RequestParser};
use count::RequestCounter;
use crypto::virtual_key::WellFormed;
use decide::Decider;
use domain::measured::Endpoint;
use forward::{Forwarded, Forwarder};
use key_owner::KeyOwnerLookup;
use pingora::protocols::http::ServerSession;
use prepared_reply::PreparedReply;
use rejection::Rejection;
use request_trace::RequestTrace;
use run_to_completion::RunToCompletion;
use settle::CallSettler;
use std::sync::Arc;
use stream::Streams;

/// The steps of a call. Each step holds the components that it needs, and no other step.
pub struct CallPipeline {
    /// Step 1.
    pub key_owner_lookup: KeyOwnerLookup,
    /// Counts requests that do not reach step 4.
    pub counter: RequestCounter,
    /// Step 2.
    pub body_reader: BodyReader,
    /// Step 3.
    pub parser: Arc<RequestParser>,
    /// Parses large bodies.
    pub large_requests: LargeBodies,
    /// Step 4.
    pub decider: Decider,
    /// Step 5.
    pub forwarder: Forwarder,
    /// Step 6.
    pub call_settler: Arc<CallSettler>,
    /// Steps 5 and 6 of a stream.
    pub streams: Arc<Streams>,
    /// Counts a call as in flight after its caller has disconnected.
    pub admission: Arc<RequestAdmission>,
    /// Limits the requests with known keys.
    pub request_limits: RequestLimits,
}

/// A call that was read in full and can be decided.
struct ReadCall {
    request: CallRequest,
    /// Headers of the provider's request.
    outbound: HeaderLines,
    body: BufferedBody,
}

impl CallPipeline {
    /// Takes a request through all steps. Always returns an answer.
    pub async fn call(
        self: &Arc<Self>,
        endpoint: Endpoint,
        session: &mut ServerSession,
        protection: &mut ProtectedRequest,
        trace: &mut RequestTrace,
    ) -> PreparedReply {
        match self.read_and_run(endpoint, session, protection, trace).await {
            Ok(reply) => reply,
            Err(rejection) => PreparedReply::from_rejection(&rejection, trace),
        }
    }

    /// Steps 1 to 3, in the task that serves the caller; then steps 4 to 6, which outlive it.
    async fn read_and_run(
        self: &Arc<Self>,
        endpoint: Endpoint,
        session: &mut ServerSession,
        protection: &mut ProtectedRequest,
        trace: &mut RequestTrace,
    ) -> Result<PreparedReply, Rejection> {
        let credential = credential::from_headers(&session.req_header().headers)?;
        let declared = match self.body_reader.check_declared_length(session) {
            Ok(declared) => declared,
            Err(too_long) => {
                self.count_too_long(credential, trace).await;
                return Err(too_long);
            }
        };
        let looked_up = self.key_owner_lookup.key_owner(credential).await;
        let looked_up = looked_up.inspect(|known_key| trace.set_owner(&known_key.owner));
        let known_key = trace.end_stage_with(Stage::KeyOwner, looked_up)?;
        self.protect(protection, &known_key)?;
        if known_key.was_recently_rejected() && may_be_large(session) {
            // Boxed: the case is rare, and this future needs more space than the one that awaits it.
            Box::pin(self.counter.reject_early(&known_key)).await?;
        }
        match self.read(endpoint, session, declared, &known_key, trace).await {
            Ok(call) => self.run_to_completion(trace.clone(), known_key, call).await,
            Err(rejection) => Err(self.counter.count_refused(&known_key, rejection).await),
        }
    }

    /// Steps 2 and 3.
    async fn read(
        &self,
        endpoint: Endpoint,
        session: &mut ServerSession,
        declared: DeclaredLength,
        known_key: &KnownKey,
        trace: &mut RequestTrace,
    ) -> Result<ReadCall, Rejection> {
        let body = self.body_reader.read(session, declared, known_key).await;
        let mut body = trace.end_stage_with(Stage::Body, body)?;
        let headers = &session.req_header().headers;
        let (request, splice) = if is_large(body.bytes.len()) {
            let (parser, headers, bytes) = (Arc::clone(&self.parser), headers.clone(), body.bytes.clone());
            let parse = move || parser.parse(endpoint, &headers, &bytes);
            self.large_requests
                .execute(&known_key.usage.large_requests, parse)
                .await
                .ok_or_else(Rejection::unavailable)??
        } else {
            self.parser.parse(endpoint, headers, &body.bytes)?
        };
        if let Some(splice) = splice {
            body.bytes = splice.apply(&body.bytes).into();
        }
        let sent = SentBody {
            length: body.bytes.len(),
            streams: request.stream.is_some(),
        };
        let continued = trace.continue_at_provider();
        let outbound = request.upstream.headers(headers, sent, continued.as_ref());
        trace.end_stage(Stage::Parse);
        Ok(ReadCall {
            request,
            outbound,
            body,
        })
    }

    /// Steps 4 to 6, even if the caller disconnects: Pingora may then drop the future of the request.
    fn run_to_completion(
        self: &Arc<Self>,
        mut trace: RequestTrace,
        known_key: Arc<KnownKey>,
        call: ReadCall,
    ) -> impl Future<Output = Result<PreparedReply, Rejection>> + use<> {
        let pipeline = Arc::clone(self);
        // Boxed before there is a future that waits for it, which would reserve space for trace and call.
        let call = RunToCompletion::new(&self.admission, move || async move {
            match pipeline.decide_and_settle(&mut trace, &known_key, call).await {
                Ok(reply) => reply,
                Err(rejection) => PreparedReply::from_rejection(&rejection, &trace),
            }
        });
        async move {
            call.await.ok_or_else(|| {
                tracing::error!("a call panicked");
                Rejection::unavailable()
            })
        }
    }

    /// Steps 4 to 6: decides, forwards and settles.
    async fn decide_and_settle(
        &self,
        trace: &mut RequestTrace,
        known_key: &KnownKey,
        call: ReadCall,
    ) -> Result<PreparedReply, Rejection> {
        let ReadCall {
            request,
            outbound,
            body,
        } = call;
        let approval = self.decider.decide(known_key, &request).await;
        let approval = trace.end_stage_with(Stage::Decide, approval)?;
        let forwarded = self.forwarder.forward(approval, &request, outbound, body).await?;
        Ok(match forwarded {
            Forwarded::Whole(sent) => self.call_settler.settle_and_answer(&request, sent, trace).await,
            Forwarded::Stream(open) => self.streams.start(request, open, &known_key.owner, trace),
        })
    }

    /// Counts a request whose declared length is too long, if its key is known (decision D30). The request is refused
    /// for its length whatever the store replies (decision D63).
    async fn count_too_long(&self, credential: WellFormed<'_>, trace: &mut RequestTrace) {
        if let Ok(known_key) = self.key_owner_lookup.key_owner(credential).await {
            trace.set_owner(&known_key.owner);
            drop(self.counter.count(&known_key).await);
        }
    }

    /// Checks key and rate of a request that is not a call, such as the list of models, and charges nothing.
    ///
    /// # Errors
    /// 401, or a denial.
    pub async fn check_key_and_rate(
        &self,
        session: &ServerSession,
        protection: &mut ProtectedRequest,
        trace: &mut RequestTrace,
    ) -> Result<(), Rejection> {
        let credential = credential::from_headers(&session.req_header().headers)?;
        let known_key = self.key_owner_lookup.key_owner(credential).await?;
        trace.set_owner(&known_key.owner);
        self.protect(protection, &known_key)?;
        self.counter.count(&known_key).await
    }

    /// Protects a request whose key is known: its connection is not closed to make room for another one.
    fn protect(&self, protection: &mut ProtectedRequest, known_key: &KnownKey) -> Result<(), Rejection> {
        match protection.protect(&self.request_limits, &known_key.usage) {
            true => Ok(()),
            false => Err(Rejection::unavailable()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, SOON, on_own_runtime, runs, text, without_timer};
    use domain::denial::Denial;
    use domain::measured::{CallEnd, Measured};
    use http::HeaderMap;
    use store::call::authorize::AUTHORIZE;
    use store::call::settle::SETTLE;
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::{sleep, timeout};

    fn approve(fixture: &Fixture) {
        let approval = fixture.approval("sk-1");
        fixture.on_command(move |command| match () {
            () if runs(command, &AUTHORIZE) => Some(approval.clone()),
            () => runs(command, &SETTLE).then(|| text("settled")),
        });
    }

    fn call(fixture: &Fixture) -> impl Future<Output = Result<PreparedReply, Rejection>> + use<> {
        let (pipeline, body) = (Arc::new(fixture.pipeline()), fixture.body());
        let request = fixture.request();
        let headers = HeaderMap::new();
        let outbound = request
            .upstream
            .headers(&headers, SentBody::from_length(body.bytes.len()), None);
        let call = ReadCall {
            request,
            outbound,
            body,
        };
        let (trace, key) = (
            RequestTrace::new(&HeaderMap::new(), None, None, &fixture.metrics),
            fixture.key(),
        );
        async move { pipeline.run_to_completion(trace, key, call).await }
    }

    #[tokio::test]
    async fn a_call_whose_caller_disconnects_is_settled() {
        let fixture = Fixture::new().await;
        assert!(fixture.health.is_trusted().await);
        approve(&fixture);
        let mut call = Box::pin(call(&fixture));
        let (request, mut provider) = tokio::select! {
            _ = &mut call => panic!("it waits for the provider"),
            request = fixture.provider_request() => request,
        };
        assert!(request.contains("sk-1"), "{request}");
        // Ends the task that served the caller.
        drop(call);
        assert_eq!(fixture.admission.in_flight(), 1, "a drain waits for it");
        let usage = r#"{"usage":{"prompt_tokens":4,"completion_tokens":1}}"#;
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{usage}",
            usage.len()
        );
        provider.write_all(answer.as_bytes()).await.unwrap();
        let settled = async {
            while fixture.arguments(&SETTLE).is_empty() || fixture.admission.in_flight() > 0 {
                sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        timeout(SOON, settled).await.unwrap();
        // 4 tokens of 2,500 nano-USD and 1 of 10,000.
        let arguments = fixture.arguments(&SETTLE).remove(0);
        assert_eq!(arguments[2..4], ["20000", "settled"]);
        let measured = Measured::parse(&arguments[4]).unwrap();
        assert_eq!(
            (measured.end, measured.input_tokens),
            (CallEnd::Completed, Some(4))
        );
    }

    /// The runtime that polls the call has no timer, so the first deadline panics.
    #[test]
    fn a_call_that_panics_is_denied() {
        let (runtime, fixture) = on_own_runtime();
        let ended = without_timer().block_on(call(&fixture));
        let Err(Rejection::Denied(denied)) = ended else {
            panic!("{ended:?}");
        };
        assert_eq!(denied.denial, Denial::ServiceUnavailable);
        runtime.block_on(async { drop(fixture) });
    }
}
