//! Scripted streams: the body of an answer in pieces, with pauses, gates and ends under the test's control.
//!
//! ```
//! use harness::{Answer, Script};
//! use std::sync::Arc;
//! use tokio::sync::Notify;
//!
//! let gate = Arc::new(Notify::new());
//! let script = Script::new()
//!     .event(r#"{"choices":[{"delta":{"content":"Hel"}}]}"#)
//!     .wait_for(&gate) // the rest once the test calls `gate.notify_one()`
//!     .in_pieces(1, "data: [DONE]\n\n"); // a chunk for each byte
//! let answer = Answer::stream(script);
//! ```

use super::feed::Feed;
use super::step::Step;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Steps of a streamed answer. Each piece is written by itself, as one chunk of the transfer encoding
/// unless the answer is [`until_close`](super::Answer::until_close).
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub(super) steps: Vec<Step>,
}

impl Script {
    /// An empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// A whole chat completion as a stream: the role, these deltas, the finish reason, `usage` unless it is `null`,
    /// `[DONE]`. Each event is a piece.
    pub fn chat(deltas: &[&str], usage: &Value) -> Self {
        let role = json!({ "role": "assistant", "content": "" });
        let mut script = Self::new().event(chat_chunk(&choice(&role, None)));
        for delta in deltas {
            script = script.event(chat_chunk(&choice(&json!({ "content": delta }), None)));
        }
        script = script.event(chat_chunk(&choice(&json!({}), Some("stop"))));
        if !usage.is_null() {
            script = script.event(chat_chunk(&json!({ "choices": [], "usage": usage })));
        }
        script.event("[DONE]")
    }

    /// A whole response as a stream of named events, with these deltas and `usage`.
    pub fn response(deltas: &[&str], usage: &Value) -> Self {
        let response = |status: &str, usage: &Value| {
            json!({ "id": "resp_test", "object": "response", "status": status, "model": "gpt-4o-mini",
                "output": [], "usage": usage })
        };
        let started = |name: &str| {
            let kind = format!("response.{name}");
            (
                kind.clone(),
                json!({ "type": kind, "response": response("in_progress", &Value::Null) }),
            )
        };
        let mut events = vec![started("created"), started("in_progress")];
        for delta in deltas {
            let kind = "response.output_text.delta".to_owned();
            events.push((
                kind.clone(),
                json!({ "type": kind, "output_index": 0, "content_index": 0, "delta": delta }),
            ));
        }
        let kind = "response.completed".to_owned();
        events.push((
            kind.clone(),
            json!({ "type": kind, "response": response("completed", usage) }),
        ));
        events.into_iter().fold(Self::new(), |script, (name, data)| {
            script.named_event(&name, data.to_string())
        })
    }

    /// Sends these bytes in one write.
    #[must_use]
    pub fn send(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Body(bytes.into()));
        self
    }

    /// Sends an event with this data.
    #[must_use]
    pub fn event(self, data: impl std::fmt::Display) -> Self {
        self.send(format!("data: {data}\n\n"))
    }

    /// Sends an event with a name and this data.
    #[must_use]
    pub fn named_event(self, name: &str, data: impl std::fmt::Display) -> Self {
        self.send(format!("event: {name}\ndata: {data}\n\n"))
    }

    /// Sends these bytes in pieces of `size`, each in a write of its own.
    #[must_use]
    pub fn in_pieces(self, size: usize, bytes: impl AsRef<[u8]>) -> Self {
        let pieces = bytes.as_ref().chunks(size.max(1));
        pieces.fold(self, |script, piece| script.send(piece))
    }

    /// Splits everything that is sent so far into pieces of `size`: boundaries fall inside events and characters. Drops
    /// the pauses and gates between.
    #[must_use]
    pub fn cut_anew(self, size: usize) -> Self {
        let sent = self.bytes();
        Self::new().in_pieces(size, sent)
    }

    /// Every byte that is sent, without pauses, gates and ends.
    pub fn bytes(&self) -> Vec<u8> {
        let sent = self.steps.iter().filter_map(|step| match step {
            Step::Body(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        sent.collect::<Vec<_>>().concat()
    }

    /// Waits for this time.
    #[must_use]
    pub fn pause(mut self, time: Duration) -> Self {
        self.steps.push(Step::Pause(time));
        self
    }

    /// Waits until the test calls `notify_one` on the gate.
    #[must_use]
    pub fn wait_for(mut self, gate: &Arc<Notify>) -> Self {
        self.steps.push(Step::Wait(gate.clone()));
        self
    }

    /// Sends the pieces that the test feeds, as they come, until the feed ends.
    #[must_use]
    pub fn feed(mut self, feed: &Feed) -> Self {
        self.steps.push(Step::Feed(feed.clone()));
        self
    }

    /// Sends nothing from here on, until the other side closes.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.steps.push(Step::Hang);
        self
    }

    /// Resets the connection here.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.steps.push(Step::Reset);
        self
    }

    /// Closes the connection here, without the end of the transfer encoding.
    #[must_use]
    pub fn break_off(mut self) -> Self {
        self.steps.push(Step::BreakOff);
        self
    }
}

/// One choice of a chunk.
fn choice(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }] })
}

/// A chunk of a chat completion with these members.
fn chat_chunk(members: &Value) -> Value {
    let mut chunk = json!({
        "id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": "gpt-4o-mini",
    });
    for (key, value) in members.as_object().expect("an object") {
        chunk[key] = value.clone();
    }
    chunk
}
