//! The reply to a request, before it is written. If the answer is a stream, only its head is there.

use super::handoff::PieceReceiver;
use super::rejection::Rejection;
use super::request_trace::RequestTrace;
use super::run_to_completion::RunToCompletion;
use crate::reply::{EdgeReply, names};
use std::time::Duration;

/// A reply that is not written yet, and the time that the request spent outside Tollgate.
#[derive(Debug)]
pub struct PreparedReply {
    /// The reply. Its body follows in `stream` if there is one.
    pub reply: EdgeReply,
    /// The body of an answer that is a stream.
    pub stream: Option<Box<RunningStream>>,
    /// Time spent waiting for the caller's body and for the provider.
    pub external_time: Duration,
}

/// A stream whose head can be written, and whose pieces follow.
pub struct RunningStream {
    /// Must be polled until it is done. When dropped, it continues without the caller.
    pub reader: RunToCompletion<()>,
    /// The pieces to be written.
    pub pieces: PieceReceiver,
}

impl std::fmt::Debug for RunningStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningStream").finish_non_exhaustive()
    }
}

impl PreparedReply {
    /// Prepares the reply to a request without a body that Tollgate answers itself.
    pub const fn immediate(reply: EdgeReply) -> Self {
        Self {
            reply,
            stream: None,
            external_time: Duration::ZERO,
        }
    }

    /// Prepares the reply to a rejected request, and records the reason. To be called once for each request.
    pub fn from_rejection(rejection: &Rejection, trace: &RequestTrace) -> Self {
        trace.record_rejection(rejection);
        let mut reply = rejection.reply();
        reply.set(names::REQUEST_ID, trace.request_id());
        Self {
            reply,
            stream: None,
            external_time: trace.external_time(),
        }
    }
}
