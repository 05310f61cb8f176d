//! The scenario of a request, chosen by the header `x-sandbox-scenario` or by a model name `sandbox-<scenario>`.

use super::body;
use super::completion::{self, Usage};
use super::reply::{self, Reply};
use super::request::Request;
use http::HeaderMap;
use serde_json::value::RawValue;
use std::time::Duration;

/// Longest delay of an answer, and longest hang: ten minutes.
pub const DELAY_MAX: Duration = Duration::from_secs(600);

/// The header that names a scenario. It wins over the model name.
const HEADER: &str = "x-sandbox-scenario";
/// What a model name that is a scenario starts with.
const MODEL_PREFIX: &str = "sandbox-";
/// Longest answer of `huge`, in bytes.
const HUGE_MAX: u64 = 256 << 20;

/// One way to answer.
#[derive(Debug)]
pub(super) enum Scenario {
    /// A completion.
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
    /// `cost:<prompt>,<completion>`: a completion that used so many tokens.
    Cost(u64, u64),
    /// `reset`: a chunked completion that breaks off in the middle.
    Reset,
    /// `truncate`: a completion shorter than its Content-Length.
    Truncate,
    /// `gzip`: a completion that is compressed although nobody asked for it.
    Gzip,
    /// `chunked`: a completion in several chunks, without a Content-Length.
    Chunked,
    /// `redirect`: a 302.
    Redirect,
    /// `huge:<bytes>`: a completion that is so long.
    Huge(u64),
}

impl Scenario {
    /// What is asked for; the error says what could have been.
    pub(super) fn of(headers: &HeaderMap, model: &str) -> Result<Self, String> {
        let by_header = headers
            .get(HEADER)
            .map(|value| value.to_str().unwrap_or_default());
        match by_header.or_else(|| model.strip_prefix(MODEL_PREFIX)) {
            None => Ok(Self::Normal),
            Some(name) => Self::parse(name.trim()).ok_or_else(|| {
                "The sandbox knows the scenarios ok, 400 to 599, hang, slow:<ms>, no-usage, usage:<json>, \
                 cost:<prompt>,<completion>, reset, truncate, gzip, chunked, redirect, huge:<bytes>."
                    .to_owned()
            }),
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
            status => Self::Status(status.parse().ok().filter(|status| (400..600).contains(status))?),
        };
        Some(found)
    }

    /// How long the answer waits, beside the sandbox's own delay.
    pub(super) fn delay(&self) -> Duration {
        match self {
            Self::Hang => DELAY_MAX,
            Self::Slow(delay) => (*delay).min(DELAY_MAX),
            _ => Duration::ZERO,
        }
    }

    /// The answer, once the delay is over.
    pub(super) fn answer(self, request: &Request, number: u64, headers: &HeaderMap) -> Reply {
        let complete = |usage: &Usage| completion::json(request, number, usage);
        let plain = || complete(&Usage::Real);
        match self {
            Self::Normal | Self::Slow(_) => body::whole(plain()),
            Self::Status(status) => reply::error(status, headers),
            Self::Hang => reply::error(504, headers),
            Self::NoUsage => body::whole(complete(&Usage::None)),
            Self::Usage(usage) => body::whole(complete(&Usage::Literal(usage))),
            Self::Cost(prompt, completion) => body::whole(complete(&Usage::Tokens(prompt, completion))),
            Self::Reset => body::broken_chunks(&plain()),
            Self::Truncate => body::too_short(&plain()),
            Self::Gzip => body::gzip(&plain()),
            Self::Chunked => body::chunked(&plain()),
            Self::Redirect => reply::redirect(),
            Self::Huge(bytes) => body::huge(&plain(), bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Result<Scenario, String> {
        Scenario::of(&HeaderMap::new(), &format!("sandbox-{name}"))
    }

    #[test]
    fn the_header_wins_over_the_model() {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, "404".parse().unwrap());
        assert!(matches!(
            Scenario::of(&headers, "sandbox-500"),
            Ok(Scenario::Status(404))
        ));
        assert!(matches!(
            Scenario::of(&HeaderMap::new(), "gpt-4o"),
            Ok(Scenario::Normal)
        ));
    }

    #[test]
    fn every_scenario_is_bounded() {
        assert_eq!(named("slow:999999999999").unwrap().delay(), DELAY_MAX);
        assert_eq!(named("hang").unwrap().delay(), DELAY_MAX);
        assert!(named(&format!("huge:{HUGE_MAX}")).is_ok());
        assert!(named(&format!("huge:{}", HUGE_MAX + 1)).is_err());
    }

    #[test]
    fn an_unknown_scenario_is_refused() {
        for name in [
            "", "200", "302", "600", "slow:", "slow:x", "usage:", "usage:{", "cost:1", "huge:-1", "HANG",
        ] {
            assert!(named(name).is_err(), "{name}");
        }
        assert!(matches!(named("cost:12, 34"), Ok(Scenario::Cost(12, 34))));
    }
}
