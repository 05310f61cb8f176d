//! The ways in which a stream ends, and the events that report them to the caller.

use crate::metrics::UpstreamResult;
use bytes::Bytes;
use domain::entry::HoldOutcome;
use domain::measured::CallEnd;
use serde_json::{Value, json};
use sse::Format;

/// Why the edge stopped reading a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The last event arrived, or the body ended.
    Complete,
    /// The caller disconnected. The rest of the stream was read within the drain deadline.
    CallerGone,
    /// The provider closed the connection before the end.
    BrokeOff,
    /// The provider was silent for `proxy.stream_idle_ms`.
    IdleTimeout,
    /// It lasted `proxy.stream_total_ms`.
    TotalTimeout,
    /// The hold was nearly used up, and Cap denied an extension.
    HoldExhausted,
    /// The hold was nearly used up, and the store gave no decision about an extension.
    HoldUndecided,
    /// The agent was frozen or the key revoked, and `proxy.stop_frozen_streams` is on.
    Stopped,
}

impl StreamEnd {
    /// Returns the value for the audit trail.
    pub const fn call_end(self) -> CallEnd {
        match self {
            Self::Complete => CallEnd::Completed,
            Self::CallerGone => CallEnd::CallerGone,
            Self::BrokeOff => CallEnd::ProviderBrokeOff,
            Self::IdleTimeout => CallEnd::IdleTimeout,
            Self::TotalTimeout => CallEnd::TotalTimeout,
            Self::HoldExhausted | Self::HoldUndecided => CallEnd::HoldExhausted,
            Self::Stopped => CallEnd::Stopped,
        }
    }

    /// Returns the provider's result, as counted in metrics.
    pub const fn upstream_result(self) -> UpstreamResult {
        match self {
            Self::Complete | Self::CallerGone | Self::HoldExhausted | Self::HoldUndecided | Self::Stopped => {
                UpstreamResult::Success
            }
            Self::BrokeOff => UpstreamResult::Unreachable,
            Self::IdleTimeout | Self::TotalTimeout => UpstreamResult::Timeout,
        }
    }

    /// Returns code and message of the error event; `None` if the stream did not fail, or nobody is connected.
    const fn error(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Complete | Self::CallerGone => return None,
            Self::BrokeOff => ("upstream_unreachable", "The provider broke off its answer."),
            Self::IdleTimeout => ("upstream_timeout", "The provider was silent for too long."),
            Self::TotalTimeout => (
                "upstream_timeout",
                "The answer took longer than a stream may take.",
            ),
            Self::HoldExhausted => (
                "hold_exhausted",
                "The answer reached what is held for this call, and a limit allows no more. Set `max_completion_tokens`, or raise the limit.",
            ),
            Self::HoldUndecided => (
                "service_unavailable",
                "The answer reached what is held for this call, and whether more may be held could not be decided.",
            ),
            Self::Stopped => (
                "stream_stopped",
                "The agent was frozen, or its key revoked, while the answer was streamed.",
            ),
        })
    }

    /// Returns the events that report the failure to the caller; `None` if there is no failure to report.
    ///
    /// The first event is `error`: OpenAI's SDKs raise it with its code. In a stream of the Responses API the event
    /// `response.failed` follows, because Codex reads the reason from that event only. LangChain, the Agents SDK and
    /// Pydantic AI stop at the first event, so they never raise the second one, of which they would show less.
    ///
    /// `how` is the method of the charge. `number` is the sequence number of the first event. `id` and `model` are
    /// fields of the failed response.
    pub fn events(
        self,
        format: Format,
        outcome: HoldOutcome,
        number: u64,
        (id, model): (&str, &str),
    ) -> Option<Bytes> {
        let (code, message) = self.error()?;
        let charged = match outcome {
            HoldOutcome::Estimated => "What is charged is at least what was held.",
            _ => "What is charged is what the provider reported.",
        };
        let message = format!("{message} {charged}");
        let error = json!({ "message": message, "type": "stream_error", "param": null, "code": code });
        let events = match format {
            Format::Chat => event("error", &json!({ "error": error })),
            Format::Responses => {
                let response = json!({
                    "id": id, "object": "response", "created_at": clock::now_ms() / 1000, "status": "failed",
                    "error": { "code": code, "message": message }, "incomplete_details": null, "model": model,
                    "output": [], "usage": null,
                });
                let failed = json!({
                    "type": "response.failed", "sequence_number": number + 1, "response": response,
                });
                let error = json!({
                    "type": "error", "code": code, "message": message, "param": null, "sequence_number": number,
                    "error": error,
                });
                event("error", &error) + &event("response.failed", &failed)
            }
        };
        Some(events.into())
    }
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_reported_with_a_code() {
        for (end, code) in [
            (StreamEnd::Complete, None),
            (StreamEnd::CallerGone, None),
            (StreamEnd::BrokeOff, Some("upstream_unreachable")),
            (StreamEnd::IdleTimeout, Some("upstream_timeout")),
            (StreamEnd::TotalTimeout, Some("upstream_timeout")),
            (StreamEnd::HoldExhausted, Some("hold_exhausted")),
            (StreamEnd::HoldUndecided, Some("service_unavailable")),
            (StreamEnd::Stopped, Some("stream_stopped")),
        ] {
            for (format, outcome, charged) in [
                (Format::Chat, HoldOutcome::Settled, "provider reported."),
                (Format::Chat, HoldOutcome::Estimated, "what was held."),
                (Format::Responses, HoldOutcome::Estimated, "what was held."),
            ] {
                let events = end
                    .events(format, outcome, 7, ("allow_1", "m"))
                    .map(|events| String::from_utf8(events.to_vec()).unwrap());
                let data = events.as_deref().map(|events| {
                    let data = events.strip_prefix("event: error\ndata: ").unwrap();
                    serde_json::from_str::<Value>(data.split_once("\n\n").unwrap().0).unwrap()
                });
                assert_eq!(
                    data.as_ref().and_then(|data| data["error"]["code"].as_str()),
                    code
                );
                assert!(data.is_none_or(|data| {
                    let message = data["error"]["message"].as_str().unwrap().to_owned();
                    message.ends_with(charged)
                }));
            }
        }
    }
}
