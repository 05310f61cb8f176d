//! Streamed calls: their options, and the parsing of a stream's end.

use serde_json::Value;
use std::time::Duration;

/// Number of bytes that are kept of a stream's end: its last events and the comment with the cost.
const TAIL_BYTES: usize = 8 << 10;
/// The header that requests the cost after the last event.
pub(super) const COST_HEADER: &str = "x-service-stream-cost";
/// Start of the comment with the cost.
const COST: &str = ": x-service-actual-usd: ";
/// The last event.
const DONE: &str = "data: [DONE]";
/// Start of an error event.
const ERROR: &str = "event: error";

/// Options of streamed answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamed {
    /// Number of events that a sandbox behind the edge should send; `None` for the provider's own.
    pub events: Option<u64>,
    /// Pause of the sandbox between events.
    pub delay: Duration,
    /// True if no limit is sent, so that the hold grows with the stream.
    pub grows: bool,
}

impl Streamed {
    /// Returns the body with the fields that request the stream.
    pub(super) fn requested_in(self, mut body: Value) -> Value {
        body["stream"] = true.into();
        if let (true, Some(fields)) = (self.grows, body.as_object_mut()) {
            fields.remove("max_tokens");
        }
        if let Some(events) = self.events {
            // In a sandbox an event is a token, and the limit also applies to it.
            if let Some(limit) = body["max_tokens"].as_u64() {
                body["max_tokens"] = limit.max(events).into();
            }
            let delay = self.delay.as_millis();
            body["user"] = format!("sandbox-stream:events={events},delay={delay}").into();
        }
        body
    }
}

/// The end of a body of any length.
#[derive(Debug, Default)]
pub(super) struct BodyTail(Vec<u8>);

impl BodyTail {
    /// Appends the next bytes of the body.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        if self.0.len() > 2 * TAIL_BYTES {
            self.0.drain(..self.0.len() - TAIL_BYTES);
        }
    }

    /// Returns the kept bytes: the whole body if it is short, as for errors.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the cost that the edge reports after the last event.
    pub(super) fn cost(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(COST));
        lines.next_back().map(str::to_owned)
    }

    /// Returns why the stream is incomplete, as the edge reports it; empty if it is complete.
    pub(super) fn failure(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        if let Some((_, error)) = text.rsplit_once(ERROR) {
            let data = error.lines().find_map(|line| line.strip_prefix("data: "));
            let document: Value = data
                .and_then(|data| serde_json::from_str(data).ok())
                .unwrap_or_default();
            let code = document["error"]["code"].as_str().unwrap_or("error event");
            return code.to_owned();
        }
        if self.is_whole() {
            String::new()
        } else {
            "stream not whole".to_owned()
        }
    }

    /// Returns whether the last event has arrived.
    pub(super) fn is_whole(&self) -> bool {
        let text = String::from_utf8_lossy(&self.0);
        text.lines().any(|line| line == DONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_asks_for_the_stream() {
        let body = json!({ "model": "m", "max_tokens": 16 });
        let plain = Streamed {
            events: None,
            delay: Duration::ZERO,
            grows: false,
        };
        assert_eq!(
            plain.requested_in(body.clone()),
            json!({ "model": "m", "max_tokens": 16, "stream": true })
        );
        let counted = Streamed {
            events: Some(200),
            delay: Duration::from_millis(5),
            grows: false,
        };
        let growing = Streamed {
            grows: true,
            ..counted
        };
        assert_eq!(
            growing.requested_in(body.clone()),
            json!({ "model": "m", "stream": true, "user": "sandbox-stream:events=200,delay=5" })
        );
        let asked = counted.requested_in(body);
        assert_eq!(
            (&asked["max_tokens"], &asked["user"]),
            (&json!(200), &json!("sandbox-stream:events=200,delay=5"))
        );
    }

    #[test]
    fn the_end_of_a_stream_says_its_cost_and_its_failure() {
        let tail = |text: &str| {
            let mut tail = BodyTail::default();
            text.as_bytes().chunks(3).for_each(|piece| tail.push(piece));
            (tail.cost(), tail.failure())
        };
        let cost = |text: &str| Some(text.to_owned());
        let whole = "data: {}\n\ndata: [DONE]\n\n: x-service-actual-usd: 0.0000123\n\n";
        assert_eq!(tail(whole), (cost("0.0000123"), String::new()));
        assert_eq!(
            tail(&["data: x\n\n".repeat(5_000), whole.to_owned()].concat()),
            (cost("0.0000123"), String::new())
        );
        assert_eq!(tail("data: {}\n\n"), (None, "stream not whole".to_owned()));
        let failed = "data: {}\n\nevent: error\ndata: {\"error\":{\"code\":\"hold_exhausted\"}}\n\n: x-service-actual-usd: 1\n\n";
        assert_eq!(tail(failed), (cost("1"), "hold_exhausted".to_owned()));
        assert_eq!(tail("event: error\ndata: ?\n\n").1, "error event");
    }

    #[test]
    fn only_the_end_is_kept() {
        let mut tail = BodyTail::default();
        for _ in 0..1_000 {
            tail.push(&[b'x'; 1_000]);
        }
        assert!(tail.0.len() <= 2 * TAIL_BYTES);
    }
}
