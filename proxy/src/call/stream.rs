//! Steps 5 and 6 of a call whose answer is a stream of server-sent events. The head goes to the caller at once. Then a
//! [reader] passes the provider's bytes on through a [handoff](super::handoff). The call is settled when the last event
//! arrives, and only then does that event pass. [`end`] lists the ways in which a stream ends. Meanwhile the hold can
//! [grow](growth), and [`stops`] ends the streams of frozen agents.
//!
//! The call's task owns hold and reader. It runs in the task that serves the caller as long as the caller is connected,
//! and continues without the caller afterwards.

pub mod end;
pub mod extender;
pub mod growth;
pub mod reader;
pub mod stops;

use super::bill::{Bill, EndedExchange, EndedStream};
use super::call_request::CallRequest;
use super::handoff;
use super::hold::OpenHold;
use super::prepared_reply::{PreparedReply, RunningStream};
use super::request_trace::RequestTrace;
use super::run_to_completion::RunToCompletion;
use super::settle::CallSettler;
use crate::account_usage::CallPermit;
use crate::admission::RequestAdmission;
use crate::metrics::streams::Extension;
use crate::metrics::{Metrics, Stage};
use crate::reply::approved::{self, ApprovalHeaders};
use crate::upstream::{AnswerStream, SentKey};
use bytes::Bytes;
use end::StreamEnd;
use extender::{Extender, NotExtended};
use growth::Growth;
use reader::{StreamLimits, StreamReader};
use secrecy::{ExposeSecret as _, SecretString};
use sse::StreamFilter;
use std::cell::LazyCell;
use std::sync::Arc;
use std::time::Duration;
use stops::{StopSignal, StopWatcher};
use store::lookup::VirtualKeyOwner;

/// Starts streams.
pub struct Streams {
    /// Settles streams.
    pub call_settler: Arc<CallSettler>,
    /// Counts and times streams.
    pub metrics: Arc<Metrics>,
    /// A stream whose caller has disconnected is still in flight.
    pub admission: Arc<RequestAdmission>,
    /// Raises the holds of streams without a limit, or beyond one (`proxy.stream_extend`).
    pub extender: Option<Extender>,
    /// Stops the streams of frozen agents and revoked keys (`proxy.stop_frozen_streams`).
    pub stops: Option<Arc<StopWatcher>>,
    /// `proxy.stream_total_ms`
    pub total: Duration,
    /// `proxy.stream_drain_ms`
    pub drain: Duration,
}

/// An approved call whose answer is a stream.
pub struct OpenStream {
    /// The charged estimate.
    pub hold: OpenHold,
    /// The answer after its head.
    pub answer: Box<AnswerStream>,
    /// The sent key, since an error may echo it.
    pub provider_key: Arc<SecretString>,
    /// Counts the call against its account.
    pub permit: CallPermit,
}

/// State owned by the reader's task.
struct StreamedCall {
    shared: Arc<Streams>,
    request: CallRequest,
    hold: OpenHold,
    reader: StreamReader,
    owner: VirtualKeyOwner,
    /// `None` if the hold does not grow.
    growth: Option<Growth>,
    extensions: u32,
    stop: Option<StopSignal>,
    trace: RequestTrace,
    _permit: CallPermit,
}

impl Streams {
    /// Builds the head of the reply to a call whose stream was opened, and starts to read the stream.
    pub fn start(
        self: &Arc<Self>,
        request: CallRequest,
        open: OpenStream,
        owner: &VirtualKeyOwner,
        trace: &RequestTrace,
    ) -> PreparedReply {
        let OpenStream {
            hold,
            mut answer,
            provider_key,
            permit,
        } = open;
        let headers = std::mem::take(&mut answer.headers);
        let mut reply = approved::reply(answer.status, headers, Bytes::new());
        ApprovalHeaders {
            allow_id: &hold.name.allow_id,
            run_id: &request.run.id,
            estimate: &hold.estimate.to_string(),
            actual: None,
            charged_failure: false,
        }
        .set_on(&mut reply);
        let key = LazyCell::new(move || SentKey::new(provider_key.expose_secret()));
        let redact = Box::new(move |text: &[u8]| key.redact(text));
        let usage = request.usage_reader();
        let filter = StreamFilter::new(
            usage.format(),
            request.stream.is_none_or(|stream| stream.usage_passes),
            (redact, usage.of_events()),
        );
        let (sender, pieces) = handoff::pair();
        let limits = StreamLimits {
            idle: request.upstream.deadlines().stream_idle,
            total: self.total,
            drain: self.drain,
            text_bytes_max: request.text_bytes_max(),
        };
        let call = StreamedCall {
            shared: Arc::clone(self),
            reader: StreamReader::new(answer, filter, sender, limits),
            growth: self.extender.as_ref().map(|_| Growth::from_request(&request)),
            request,
            hold,
            extensions: 0,
            stop: self.stops.as_ref().map(|stops| stops.watch(owner)),
            owner: owner.clone(),
            trace: trace.clone(),
            _permit: permit,
        };
        PreparedReply {
            reply,
            external_time: trace.external_time_of_stream(),
            stream: Some(Box::new(RunningStream {
                reader: RunToCompletion::new(&self.admission, || Box::new(call).run()),
                pieces,
            })),
        }
    }
}

impl StreamedCall {
    /// Boxed, like everything that a stream needs only at its end: a future stores arguments passed by value more than
    /// once, and reserves space for all that it ever awaits.
    async fn run(mut self: Box<Self>) {
        let open = self.shared.metrics.streams.opened();
        let mut first_byte = None;
        let end = loop {
            let read = self.read().await;
            if first_byte.is_none() && read.is_ok() {
                let after = self.reader.elapsed();
                self.shared.metrics.streams.began(after);
                first_byte = Some(after);
            }
            let passed = match read {
                Ok(out) => self.pass(out).await,
                Err(end) => Err(end),
            };
            if let Err(end) = passed {
                break end;
            }
        };
        Box::pin(self.settle(end, first_byte)).await;
        drop(open);
    }

    /// Reads the next bytes that may pass, unless the stream must stop.
    async fn read(&mut self) -> Result<Vec<Bytes>, StreamEnd> {
        let Some(stop) = &mut self.stop else {
            return self.reader.read().await;
        };
        let stopped = tokio::select! {
            biased;
            () = stop => StreamEnd::Stopped,
            read = self.reader.read() => return read,
        };
        Err(self.reader.or_caller_gone(stopped))
    }

    /// Passes pieces on, once the hold covers them.
    async fn pass(&mut self, out: Vec<Bytes>) -> Result<(), StreamEnd> {
        // Usage alone does not mark the end: some providers report it in every chunk. The hold also grows after the
        // caller has left: the provider goes on, and its bill must fit into the limits.
        if !self.reader.filter().is_at_end() {
            self.grow().await?;
        }
        self.reader.pass(out).await
    }

    /// Raises the hold if the answer approaches it.
    async fn grow(&mut self) -> Result<(), StreamEnd> {
        let (Some(growth), Some(extender)) = (&mut self.growth, &self.shared.extender) else {
            return Ok(());
        };
        let text_bytes = self.reader.filter().text_bytes();
        let Some(tokens) = growth.wanted(&self.request, text_bytes) else {
            return Ok(());
        };
        let not_extended = match self.request.cost_of_tokens(tokens) {
            Some(to) => Box::pin(extender.extend(&self.owner, &mut self.hold, to))
                .await
                .err(),
            None => Some(NotExtended::NoDecision),
        };
        self.shared
            .metrics
            .streams
            .extended(not_extended.map_or(Extension::Raised, NotExtended::result));
        match not_extended {
            None => {
                growth.grew(tokens);
                self.extensions += 1;
                Ok(())
            }
            Some(not_extended) => {
                tracing::info!(
                    decision.id = self.hold.name.allow_id,
                    ?not_extended,
                    "a stream ends at what is held for it"
                );
                Err(match not_extended {
                    NotExtended::NoDecision => StreamEnd::HoldUndecided,
                    NotExtended::Denied(_) | NotExtended::Revoked => StreamEnd::HoldExhausted,
                })
            }
        }
    }

    /// Settles the call, then passes the end of the stream to the caller. `first_byte` is `None` if the body was empty.
    async fn settle(self: Box<Self>, end: StreamEnd, first_byte: Option<Duration>) {
        let Self {
            shared,
            request,
            hold,
            reader,
            extensions,
            mut trace,
            _permit,
            ..
        } = *self;
        let took = reader.elapsed();
        trace.end_stage(Stage::Forward);
        let call_end = end.call_end();
        let bill = Bill::from_stream(&request, hold.estimate, reader.filter(), call_end);
        let exchange = EndedExchange {
            end: call_end,
            result: end.upstream_result(),
            status: Some(reader.status()),
            took,
            stream: Some(EndedStream {
                first_byte,
                extensions,
            }),
        };
        let settled = shared
            .call_settler
            .settle(&request, hold, bill, exchange, &mut trace)
            .await;
        let wants_cost = request.stream.is_some_and(|stream| stream.wants_cost);
        let knows_cost = settled.bill.actual().is_some();
        let comment = (wants_cost && knows_cost).then(|| cost_comment(&settled.charged_usd));
        let failure = end.events(
            request.usage_reader().format(),
            settled.bill.outcome,
            reader.filter().events(),
            (&settled.allow_id, &request.model),
        );
        reader.finish(end, failure, comment).await;
    }
}

/// Returns the comment with the real cost that follows the last event (`X-Service-Stream-Cost: true`), if the cost is
/// known.
fn cost_comment(charged: &str) -> Bytes {
    format!(": x-service-actual-usd: {charged}\n\n").into()
}
