//! The scenario of a request, selected by the header `x-sandbox-scenario`, by a model name `sandbox-<scenario>`, or by
//! the same name in the body's `user`, which passes through the edge and leaves the model with its price.

use super::body;
use super::completion;
use super::plan::{StreamFault, StreamPlan};
use super::reply::{self, BoxedReply};
use super::request::SandboxRequest;
use super::usage::UsageValue;
use super::{DELAY_MAX, HUGE_MAX};
use http::HeaderMap;
use serde_json::value::RawValue;
use std::time::Duration;

/// The header with a scenario. It takes precedence over the model name, which takes precedence over `user`.
const HEADER: &str = "x-sandbox-scenario";
/// Prefix of a model name or user that selects a scenario.
const PREFIX: &str = "sandbox-";
/// Number of events of a stream before the scenarios `reset` and `truncate` end it.
const FEW_EVENTS: u64 = 4;

/// A way of answering.
#[derive(Debug)]
pub(super) enum AnswerScenario {
    /// A completion without delay.
    Normal,
    /// `400` to `599`: the provider's error with that status.
    Status(u16),
    /// `hang`: no answer for [`DELAY_MAX`].
    Hang,
    /// `slow:<ms>`: a completion after that time.
    Slow(Duration),
    /// `no-usage`: a completion without `usage`.
    NoUsage,
    /// `usage:<json>`: a completion with that `usage`.
    Usage(Box<RawValue>),
    /// `cost:<prompt>,<completion>`: a completion with this usage.
    Cost(u64, u64),
    /// `reset`: a chunked completion that breaks off in the middle.
    Reset,
    /// `truncate`: a completion shorter than its Content-Length.
    Truncate,
    /// `gzip`: a completion that is compressed without a request.
    Gzip,
    /// `chunked`: a completion in several chunks, without a Content-Length.
    Chunked,
    /// `redirect`: a 302.
    Redirect,
    /// `huge:<bytes>`: a completion with this length.
    Huge(u64),
    /// `stream:<options>`: a stream with these [`StreamPlan`] options, if a stream is requested.
    Stream(Box<StreamPlan>),
}

impl AnswerScenario {
    /// Returns the requested scenario. The error lists the possible ones.
    pub(super) fn from_headers(headers: &HeaderMap, model: &str, user: Option<&str>) -> Result<Self, String> {
        let by_header = headers
            .get(HEADER)
            .map(|value| value.to_str().unwrap_or_default());
        let by_name = |name: &str| name.strip_prefix(PREFIX).map(str::to_owned);
        let by_body = || by_name(model).or_else(|| user.and_then(by_name));
        match by_header.map(str::to_owned).or_else(by_body) {
            None => Ok(Self::Normal),
            Some(name) => Self::parse(name.trim()).ok_or_else(|| refused(name.trim())),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let (word, value) = name.split_once(':').unwrap_or((name, ""));
        let found = match word {
            "ok" => Self::Normal,
            "hang" => Self::Hang,
            "slow" => Self::Slow(Duration::from_millis(value.parse().ok()?)),
            "no-usage" => Self::NoUsage,
            "usage" => Self::Usage(RawValue::from_string(value.to_owned()).ok()?),
            "cost" => {
                let (prompt, completion) = value.split_once(',')?;
                Self::Cost(prompt.trim().parse().ok()?, completion.trim().parse().ok()?)
            }
            "reset" => Self::Reset,
            "truncate" => Self::Truncate,
            "gzip" => Self::Gzip,
            "chunked" => Self::Chunked,
            "redirect" => Self::Redirect,
            "huge" => Self::Huge(value.parse().ok().filter(|bytes| *bytes <= HUGE_MAX)?),
            "stream" => Self::Stream(Box::new(StreamPlan::parse(value)?)),
            status => Self::Status(status.parse().ok().filter(|status| (400..600).contains(status))?),
        };
        Some(found)
    }

    /// Returns how long the answer waits, in addition to the sandbox's own delay.
    pub(super) fn delay(&self) -> Duration {
        match self {
            Self::Hang => DELAY_MAX,
            Self::Slow(delay) => (*delay).min(DELAY_MAX),
            Self::Stream(plan) => plan.head,
            _ => Duration::ZERO,
        }
    }

    /// Returns how the answer is streamed, if a stream is requested; `None` if the scenario cannot be streamed.
    pub(super) fn plan(&self) -> Option<StreamPlan> {
        let plan = StreamPlan::default();
        Some(match self {
            Self::Normal | Self::Slow(_) | Self::Chunked => plan,
            Self::Stream(own) if own.json => return None,
            Self::Stream(own) => (**own).clone(),
            Self::NoUsage => StreamPlan {
                usage: UsageValue::None,
                ..plan
            },
            Self::Usage(usage) => StreamPlan {
                usage: UsageValue::Literal(usage.clone()),
                ..plan
            },
            Self::Cost(prompt, completion) => StreamPlan {
                usage: UsageValue::Tokens(*prompt, *completion),
                ..plan
            },
            Self::Reset => StreamPlan {
                fault: Some((FEW_EVENTS, StreamFault::Cut)),
                ..plan
            },
            Self::Truncate => StreamPlan {
                fault: Some((FEW_EVENTS, StreamFault::End)),
                ..plan
            },
            Self::Gzip => StreamPlan { gzip: true, ..plan },
            Self::Huge(bytes) => StreamPlan {
                events: Some(1),
                event_bytes: usize::try_from(*bytes).unwrap_or(usize::MAX).max(1),
                ..plan
            },
            Self::Status(_) | Self::Hang | Self::Redirect => return None,
        })
    }

    /// Returns the usage of a complete answer.
    pub(super) fn usage(&self) -> UsageValue {
        match self {
            Self::NoUsage => UsageValue::None,
            Self::Usage(usage) => UsageValue::Literal(usage.clone()),
            Self::Cost(prompt, completion) => UsageValue::Tokens(*prompt, *completion),
            Self::Stream(plan) => plan.usage.clone(),
            _ => UsageValue::Real,
        }
    }

    /// Builds the answer, once the delay is over.
    pub(super) fn answer(&self, request: &SandboxRequest, number: u64, headers: &HeaderMap) -> BoxedReply {
        let json = || completion::json(request, number, &self.usage());
        match self {
            Self::Normal | Self::Slow(_) | Self::NoUsage | Self::Usage(_) | Self::Cost(..) => {
                body::whole(json())
            }
            Self::Stream(plan) if plan.gzip => body::gzip(&json()),
            Self::Stream(_) => body::whole(json()),
            Self::Status(status) => reply::error(*status, headers),
            Self::Hang => reply::error(504, headers),
            Self::Reset => body::broken_chunks(&json()),
            Self::Truncate => body::too_short(&json()),
            Self::Gzip => body::gzip(&json()),
            Self::Chunked => body::chunked(&json()),
            Self::Redirect => reply::redirect(),
            Self::Huge(bytes) => body::huge(&json(), *bytes),
        }
    }
}

/// Returns why a scenario is refused.
fn refused(name: &str) -> String {
    if let Some(fault) = name.strip_prefix("stream:").and_then(StreamPlan::fault) {
        return fault;
    }
    "The sandbox knows the scenarios ok, 400 to 599, hang, slow:<ms>, no-usage, usage:<json>, \
     cost:<prompt>,<completion>, reset, truncate, gzip, chunked, redirect, huge:<bytes>, stream:<options>."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Result<AnswerScenario, String> {
        AnswerScenario::from_headers(&HeaderMap::new(), &format!("sandbox-{name}"), None)
    }

    #[test]
    fn the_header_wins_over_the_model() {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, "404".parse().unwrap());
        assert!(matches!(
            AnswerScenario::from_headers(&headers, "sandbox-500", Some("sandbox-502")),
            Ok(AnswerScenario::Status(404))
        ));
        headers.clear();
        assert!(matches!(
            AnswerScenario::from_headers(&headers, "sandbox-500", Some("sandbox-502")),
            Ok(AnswerScenario::Status(500))
        ));
        assert!(matches!(
            AnswerScenario::from_headers(&headers, "gpt-4o", Some("sandbox-502")),
            Ok(AnswerScenario::Status(502))
        ));
        assert!(matches!(
            AnswerScenario::from_headers(&headers, "gpt-4o", Some("anna")),
            Ok(AnswerScenario::Normal)
        ));
    }

    #[test]
    fn every_scenario_is_bounded() {
        assert_eq!(named("slow:999999999999").unwrap().delay(), DELAY_MAX);
        assert_eq!(named("hang").unwrap().delay(), DELAY_MAX);
        assert!(named(&format!("huge:{HUGE_MAX}")).is_ok());
        assert!(named(&format!("huge:{}", HUGE_MAX + 1)).is_err());
    }
}
