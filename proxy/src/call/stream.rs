//! Steps 5 and 6 of a call whose answer is a stream of server-sent events. The head goes to the caller at once; then a
//! [reader] passes the provider's bytes on through a [handoff], the call is settled when the last event came, and only
//! then that event passes. What is charged says [`bill`], how streams end [`end`].
//!
//! The reader owns the hold. It runs in the task that serves the caller as long as he is there, and goes on without him.

pub mod bill;
pub mod end;
pub mod handoff;
pub mod reader;

use super::chat_request::{ChatRequest, StreamRequest};
use super::completed::Completed;
use super::hold::{HoldSettler, OpenHold};
use super::request_trace::{ApprovedCall, RequestTrace};
use super::run_to_completion::RunToCompletion;
use crate::admission::{Admission, InFlight};
use crate::buffer_budget::CallPermit;
use crate::metrics::{Metrics, Stage};
use crate::reply::approved::{self, ApprovalHeaders};
use crate::upstream::{Answer, AnswerStream, redact};
use bill::StreamBill;
use bytes::Bytes;
use domain::measured::Measured;
use end::StreamEnd;
use handoff::Taker;
use reader::{Reader, StreamLimits};
use sse::Filter;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Starts streams.
pub struct Streams {
    /// Settles their holds.
    pub holds: Arc<HoldSettler>,
    /// Counts and times them.
    pub metrics: Arc<Metrics>,
    /// A stream whose caller is gone is in flight still.
    pub admission: Arc<Admission>,
    /// Their deadlines.
    pub limits: StreamLimits,
}

/// An approved call whose answer is a stream.
pub struct OpenStream {
    /// The charged estimate.
    pub hold: OpenHold,
    /// The answer, behind its head.
    pub answer: AnswerStream,
    /// When the request was sent.
    pub began: Instant,
    /// Counts the call.
    pub permit: CallPermit,
}

/// A stream whose head can be written.
pub struct RunningStream {
    /// To be polled until it is done. Dropped, it goes on without the caller.
    pub reader: RunToCompletion<()>,
    /// What is to be written.
    pub pieces: Taker,
}

impl std::fmt::Debug for RunningStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningStream").finish_non_exhaustive()
    }
}

/// What the reader's task owns.
struct StreamedCall {
    shared: Arc<Streams>,
    request: ChatRequest,
    asked: StreamRequest,
    hold: OpenHold,
    reader: Reader,
    trace: RequestTrace,
    began: Instant,
    _permit: CallPermit,
    _in_flight: Option<InFlight>,
}

impl Streams {
    /// The answer to a call whose stream was opened: its head, and the stream.
    #[must_use]
    pub fn complete(
        self: &Arc<Self>,
        request: ChatRequest,
        asked: StreamRequest,
        mut open: OpenStream,
        trace: &RequestTrace,
    ) -> Completed {
        let mut reply = approved::reply(Answer {
            status: open.answer.status,
            headers: std::mem::take(&mut open.answer.headers),
            body: Bytes::new(),
        });
        ApprovalHeaders {
            allow_id: &open.hold.name.allow_id,
            run_id: &request.run.id,
            estimate: &open.hold.estimate.to_string(),
            actual: None,
            charged_failure: false,
        }
        .set_on(&mut reply);
        Completed {
            reply,
            external_time: trace.external_time_of_stream(),
            stream: Some(Box::new(self.start(request, asked, open, trace.clone()))),
        }
    }

    /// Starts to read a stream.
    fn start(
        self: &Arc<Self>,
        request: ChatRequest,
        asked: StreamRequest,
        open: OpenStream,
        trace: RequestTrace,
    ) -> RunningStream {
        let (giver, pieces) = handoff::pair();
        let OpenStream {
            hold,
            answer,
            began,
            permit,
        } = open;
        let redact = Box::new(redact::text);
        let filter = Filter::new(asked.format, asked.usage_passes, redact);
        let call = StreamedCall {
            shared: Arc::clone(self),
            reader: Reader::new(answer, filter, giver, self.limits, began),
            request,
            asked,
            hold,
            trace,
            began,
            _permit: permit,
            _in_flight: self.admission.enter(),
        };
        RunningStream {
            reader: RunToCompletion::new(call.run()),
            pieces,
        }
    }
}

impl StreamedCall {
    async fn run(mut self) {
        let open = self.shared.metrics.streams.opened();
        let mut first_byte = None;
        let end = loop {
            let end = self.reader.step().await;
            if first_byte.is_none() {
                let after = self.began.elapsed();
                self.shared.metrics.streams.began(after);
                first_byte = Some(after);
            }
            if let Some(end) = end {
                break end;
            }
        };
        self.settle(end, first_byte.unwrap_or_default()).await;
        drop(open);
    }

    /// Settles the call, then gives the caller the end of the stream.
    async fn settle(self, end: StreamEnd, first_byte: Duration) {
        let Self {
            shared,
            request,
            asked,
            hold,
            reader,
            mut trace,
            began,
            _permit,
            _in_flight,
        } = self;
        let took = began.elapsed();
        trace.pass(&shared.metrics, Stage::Upstream);
        let (allow_id, estimate) = (hold.name.allow_id.clone(), hold.estimate);
        let bill = StreamBill::new(&request, &asked, estimate, reader.filter());
        let measured = measured(&request, &bill, end, (took, first_byte));
        let settlement = shared
            .holds
            .settle(hold, bill.cost, bill.how, Some(measured))
            .await;
        trace.pass(&shared.metrics, Stage::Settle);
        let charged = bill.cost.to_string();
        let actual = bill.usage.map(|_| bill.cost);
        shared
            .metrics
            .approved_stream(estimate, actual, end.upstream_result());
        shared
            .metrics
            .streams
            .ended(end.call_end(), bill.usage.is_some(), took);
        trace.record_approval(&ApprovedCall {
            id: &allow_id,
            run: &request.run.id,
            model: &request.model,
            estimate: &estimate.to_string(),
            charged: &charged,
            how: bill.how.as_str(),
            settlement,
            status: reader.status().as_u16(),
            upstream_time: took,
        });
        let comment = asked.wants_cost.then(|| cost_comment(&charged));
        reader.finish(end, asked.format, comment).await;
    }
}

/// The comment that tells the real cost behind the last event (`X-Service-Stream-Cost: true`).
fn cost_comment(charged: &str) -> Bytes {
    format!(": x-service-actual-usd: {charged}\n\n").into()
}

/// What the audit trail says of the call.
fn measured(
    request: &ChatRequest,
    bill: &StreamBill,
    end: StreamEnd,
    (took, first_byte): (Duration, Duration),
) -> Measured {
    let ms = |time: Duration| u64::try_from(time.as_millis()).ok();
    let usage = bill.usage.as_ref();
    Measured {
        endpoint: request.endpoint,
        streamed: true,
        upstream: None,
        input_tokens: usage.map(|usage| usage.prompt_tokens),
        cached_tokens: usage.map(|usage| usage.cached_tokens),
        output_tokens: usage.map(|usage| usage.completion_tokens),
        latency_ms: ms(took),
        first_byte_ms: ms(first_byte),
        end: end.call_end(),
        extensions: 0,
    }
}
