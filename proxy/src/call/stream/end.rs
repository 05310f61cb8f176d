//! How a stream ends, and what the caller is told of it.

use crate::metrics::UpstreamResult;
use bytes::Bytes;
use domain::entry::How;
use domain::measured::CallEnd;
use serde_json::{Value, json};
use sse::Format;

/// Why no more is read of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The last event came, or the body ended.
    Complete,
    /// The caller disconnected, and what the provider said within the time for that was read.
    CallerGone,
    /// The provider broke off.
    BrokeOff,
    /// The provider was silent for `proxy.stream_idle_ms`.
    IdleTimeout,
    /// It took `proxy.stream_total_ms`.
    TotalTimeout,
    /// What was held for it was nearly used, and Cap refused more.
    HoldExhausted,
    /// What was held for it was nearly used, and the store gave no decision about more.
    HoldUndecided,
    /// The agent was frozen or the key revoked, and `proxy.stop_frozen_streams` is on.
    Stopped,
}

impl StreamEnd {
    /// The word of the audit trail.
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

    /// The provider's answer as metrics count it.
    pub const fn upstream_result(self) -> UpstreamResult {
        match self {
            Self::Complete | Self::CallerGone | Self::HoldExhausted | Self::HoldUndecided | Self::Stopped => {
                UpstreamResult::Success
            }
            Self::BrokeOff => UpstreamResult::Unreachable,
            Self::IdleTimeout | Self::TotalTimeout => UpstreamResult::Timeout,
        }
    }

    /// Code and message of the error event; `None` where nothing is wrong, or nobody there.
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

    /// The events that tell the caller. The first is the error that OpenAI's SDKs raise, with its code. In the stream
    /// of a response `response.failed` follows: Codex reads no other reason, and frameworks that would raise it with
    /// less (LangChain, the Agents SDK, Pydantic AI) have ended before. `how` is how the call is charged, `number` the
    /// place of the first event in the stream of a response, `id` and `model` are those of the response that failed.
    pub fn events(self, format: Format, how: How, number: u64, (id, model): (&str, &str)) -> Option<Bytes> {
        let (code, message) = self.error()?;
        let charged = match how {
            How::Estimated => "What is charged is at least what was held.",
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
    fn what_goes_wrong_is_told_with_a_code() {
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
            for (format, how, charged) in [
                (Format::Chat, How::Settled, "provider reported."),
                (Format::Chat, How::Estimated, "what was held."),
                (Format::Responses, How::Estimated, "what was held."),
            ] {
                let events = end
                    .events(format, how, 7, ("allow_1", "m"))
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
