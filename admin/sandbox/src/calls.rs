//! Log of the answer sent for each call, from which a test can recompute the cost of the call.

use super::request::SandboxRequest;
use clock::now_ms;
use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of ended calls that are remembered; older ones are forgotten.
const CALLS_KEPT: usize = 20_000;
/// Longest text of a call that is remembered, in bytes; a longer one is cut.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Longest id of a caller that is remembered, in bytes.
const ID_BYTES_MAX: usize = 128;

/// The calls that are over, oldest first.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<EndedCalls>);

#[derive(Debug, Default)]
struct EndedCalls {
    calls: VecDeque<RecordedCall>,
    forgotten: u64,
}

/// End of a call, as far as the sender knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    /// Everything was passed to the connection.
    Whole,
    /// The connection was broken off on purpose.
    Cut,
    /// The other side closed the connection before.
    PeerGone,
}

#[derive(Debug)]
struct RecordedCall {
    number: u64,
    endpoint: &'static str,
    model: String,
    client_request_id: Option<String>,
    stream: bool,
    status: u16,
    prompt_tokens: u64,
    /// The usage that was sent last, as text.
    usage: Option<String>,
    events: u64,
    /// Bytes of the answer's text.
    text_bytes: u64,
    bytes: u64,
    is_stalled: bool,
    end: AnswerEnd,
    began_ms: u64,
    first_byte_ms: Option<u64>,
    ended_ms: u64,
}

/// Records one call, which ends when this is dropped, also if the caller disconnects.
#[derive(Debug)]
pub(super) struct Recorder {
    calls: Arc<Calls>,
    /// `Some` until it is dropped.
    call: Option<RecordedCall>,
}

/// Content of a piece of an answer.
#[derive(Debug, Default)]
pub(super) struct SentPiece {
    pub(super) bytes: usize,
    pub(super) events: u64,
    pub(super) text_bytes: usize,
    pub(super) usage: Option<String>,
}

impl Recorder {
    /// Starts the record of a call.
    pub(super) fn new(
        calls: &Arc<Calls>,
        number: u64,
        request: &SandboxRequest,
        headers: &HeaderMap,
    ) -> Self {
        let id = headers
            .get("x-client-request-id")
            .and_then(|value| value.to_str().ok())
            .filter(|id| id.len() <= ID_BYTES_MAX);
        let call = RecordedCall {
            number,
            endpoint: request.endpoint.as_str(),
            model: cut(&request.model).to_owned(),
            client_request_id: id.map(str::to_owned),
            stream: request.stream,
            status: 0,
            prompt_tokens: request.prompt_tokens,
            usage: None,
            events: 0,
            text_bytes: 0,
            bytes: 0,
            is_stalled: false,
            end: AnswerEnd::PeerGone,
            began_ms: now_ms(),
            first_byte_ms: None,
            ended_ms: 0,
        };
        Self {
            calls: calls.clone(),
            call: Some(call),
        }
    }

    /// Records the status of the answer.
    pub(super) fn status(&mut self, status: u16) {
        if let Some(call) = &mut self.call {
            call.status = status;
        }
    }

    /// Records a piece that was handed to the connection.
    pub(super) fn sent(&mut self, sent: SentPiece) {
        let Some(call) = &mut self.call else {
            return;
        };
        call.first_byte_ms.get_or_insert_with(now_ms);
        call.bytes += u64::try_from(sent.bytes).unwrap_or(u64::MAX);
        call.events += sent.events;
        call.text_bytes += u64::try_from(sent.text_bytes).unwrap_or(u64::MAX);
        if let Some(usage) = sent.usage {
            call.usage = Some(cut(&usage).to_owned());
        }
    }

    /// Records that nothing more is sent while the connection stays open.
    pub(super) fn stalled(&mut self) {
        if let Some(call) = &mut self.call {
            call.is_stalled = true;
        }
    }

    /// Ends the record.
    pub(super) fn end(&mut self, end: AnswerEnd) {
        if let Some(call) = &mut self.call {
            call.end = end;
        }
    }
}

/// Returns the beginning of a text that is remembered.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(mut call) = self.call.take() {
            call.ended_ms = now_ms();
            self.calls.push(call);
        }
    }
}

impl Calls {
    fn push(&self, call: RecordedCall) {
        let mut ended = self.0.lock();
        if ended.calls.len() == CALLS_KEPT {
            ended.calls.pop_front();
            ended.forgotten += 1;
        }
        ended.calls.push_back(call);
    }

    /// Returns the answer of `GET /sandbox/calls`: the ended calls, in the order of their ends.
    pub(super) fn document(&self) -> Value {
        let ended = self.0.lock();
        let calls: Vec<Value> = ended.calls.iter().map(RecordedCall::document).collect();
        json!({ "calls": calls, "forgotten": ended.forgotten })
    }
}

impl RecordedCall {
    fn document(&self) -> Value {
        // Usage that is not JSON is shown as text.
        let usage = self.usage.as_deref().map(|text| {
            serde_json::from_str::<Box<RawValue>>(text)
                .ok()
                .and_then(|raw| serde_json::from_str(raw.get()).ok())
                .unwrap_or_else(|| Value::from(text))
        });
        let end = match self.end {
            AnswerEnd::Whole => "whole",
            AnswerEnd::Cut => "cut",
            AnswerEnd::PeerGone => "peer_gone",
        };
        json!({
            "number": self.number, "request_id": format!("req_sandbox{:016x}", self.number),
            "client_request_id": self.client_request_id, "endpoint": self.endpoint, "model": self.model,
            "stream": self.stream, "status": self.status, "prompt_tokens": self.prompt_tokens,
            "usage": usage, "events": self.events, "text_bytes": self.text_bytes, "bytes": self.bytes,
            "stalled": self.is_stalled, "end": end, "began_ms": self.began_ms, "first_byte_ms": self.first_byte_ms,
            "ended_ms": self.ended_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::tests::request;
    use domain::measured::Endpoint;

    /// All calls together are bounded, too.
    #[test]
    fn long_texts_of_a_call_are_cut() {
        let calls = Arc::new(Calls::default());
        let mut request = request(Endpoint::Chat, None);
        request.model = format!("x{}", "ä".repeat(1 << 20));
        let mut recorder = Recorder::new(&calls, 1, &request, &HeaderMap::new());
        recorder.sent(SentPiece {
            usage: Some("ä".repeat(1 << 20)),
            ..SentPiece::default()
        });
        drop(recorder);
        let call = &calls.document()["calls"][0];
        assert_eq!(call["model"].as_str().unwrap().len(), (4 << 10) - 1);
        assert_eq!(call["usage"].as_str().unwrap().len(), 4 << 10);
    }

    #[test]
    fn the_oldest_calls_are_forgotten() {
        let calls = Arc::new(Calls::default());
        let request = request(Endpoint::Chat, None);
        for number in 0..CALLS_KEPT as u64 + 2 {
            drop(Recorder::new(&calls, number, &request, &HeaderMap::new()));
        }
        let document = calls.document();
        assert_eq!(document["calls"].as_array().unwrap().len(), CALLS_KEPT);
        assert_eq!(
            (&document["forgotten"], &document["calls"][0]["number"]),
            (&json!(2), &json!(2))
        );
    }
}
