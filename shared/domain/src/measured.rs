//! Measurements of a call that the edge sent to a provider: one word of the call's line in the audit trail, and the
//! object `call` of its entry. Entries are hashed with it, so a word or field never changes its meaning; a new one
//! needs a new [line version](crate::entry::LINE_VERSION).

mod billing;

pub use billing::{Billing, UNSPELT};

use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt::Display;

/// Largest count of tokens and of milliseconds in a word. A larger one is written as unknown.
pub(crate) const NUMBER_MAX: u64 = 1_000_000_000;
/// Longest name of an upstream, in bytes.
pub const UPSTREAM_NAME_MAX: usize = 40;
/// Initial capacity for a word, in bytes.
const WORD_BYTES: usize = 80;
/// Number of parts of a word before those of [`Billing`].
const PARTS: usize = 10;

/// Measurements of one call. Unknown ones are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// The called endpoint.
    #[serde(serialize_with = "word")]
    pub endpoint: Endpoint,
    /// True if the caller requested a stream.
    #[serde(rename = "stream")]
    pub streamed: bool,
    /// Name of the upstream, if the call went to one of `[upstreams.<name>]`; see [`is_upstream_name`].
    pub upstream: Option<String>,
    /// Tokens of the prompt, including cached ones, as the provider reported them.
    pub input_tokens: Option<u64>,
    /// The part of these tokens that the provider read from its cache.
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer, as the provider reported them.
    pub output_tokens: Option<u64>,
    /// Time from sending the request to the end of the answer, in ms.
    pub latency_ms: Option<u64>,
    /// Time from sending the request to the first byte of the answer, in ms.
    pub first_byte_ms: Option<u64>,
    /// End of the exchange with the provider.
    #[serde(serialize_with = "word")]
    pub end: CallEnd,
    /// Number of times that the hold was raised while the answer was streamed.
    pub extensions: u32,
    /// The details of the charge.
    #[serde(skip)]
    pub billing: Billing,
}

crate::words! {
    /// An API that the edge forwards calls of.
    pub enum Endpoint {
        /// `POST /v1/chat/completions`
        Chat = "chat.completions",
        /// `POST /v1/responses`
        Responses = "responses",
        /// `POST /v1/embeddings`
        Embeddings = "embeddings",
    }
}

crate::words! {
    /// End of the exchange with the provider.
    pub enum CallEnd {
        /// The whole answer arrived.
        Completed = "completed",
        /// The caller disconnected during the stream; it was read on for the usage, for a limited time.
        CallerGone = "caller_gone",
        /// The provider ended the stream early, or its connection broke.
        ProviderBrokeOff = "provider_broke_off",
        /// A stream did not begin in time.
        FirstByteTimeout = "first_byte_timeout",
        /// The stream was silent for too long.
        IdleTimeout = "idle_timeout",
        /// The answer took too long as a whole.
        TotalTimeout = "total_timeout",
        /// The stream's cost reached its hold, and the hold could not be extended.
        HoldExhausted = "hold_exhausted",
        /// The edge stopped the stream, since the agent was frozen or the key revoked.
        Stopped = "stopped",
        /// The provider answered with 4xx.
        Refused = "refused",
        /// Any other failure of a call that is not streamed: 5xx, a redirect, an unreachable provider.
        Failed = "failed",
    }
}

/// Returns whether an upstream may have this name: 1 to [`UPSTREAM_NAME_MAX`] characters of `a-z`, `0-9`, `_` and `-`.
pub fn is_upstream_name(name: &str) -> bool {
    let is_allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=UPSTREAM_NAME_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}

impl Measured {
    /// Returns the word of the audit line, without a space:
    /// `<endpoint>,<0|1>,<upstream>,<input>,<cached>,<output>,<latency>,<first byte>,<end>,<extensions>`, and
    /// `,<key>=<value>` for each detail of [`Billing`] that is not the default. Unknown values are empty, and so are
    /// names and numbers that [`parse`](Self::parse) would refuse.
    pub fn to_word(&self) -> String {
        let mut word = String::with_capacity(WORD_BYTES);
        let mut push = |part: &str| word.push_str(part);
        push(self.endpoint.as_str());
        push(if self.streamed { ",1," } else { ",0," });
        push(
            self.upstream
                .as_deref()
                .filter(|name| is_upstream_name(name))
                .unwrap_or_default(),
        );
        let mut digits = itoa::Buffer::new();
        for number in [
            self.input_tokens,
            self.cached_tokens,
            self.output_tokens,
            self.latency_ms,
            self.first_byte_ms,
        ] {
            push(",");
            push(
                number
                    .filter(|number| *number <= NUMBER_MAX)
                    .map_or("", |number| digits.format(number)),
            );
        }
        push(",");
        push(self.end.as_str());
        push(",");
        push(digits.format(self.extensions));
        self.billing.push_to(&mut word);
        word
    }

    /// Parses the word of [`to_word`](Self::to_word); `None` if malformed.
    pub fn parse(word: &str) -> Option<Self> {
        let parts: Vec<&str> = word.split(',').collect();
        let (parts, details) = parts.split_at_checked(PARTS)?;
        let [
            endpoint,
            streamed,
            upstream,
            input,
            cached,
            output,
            latency,
            first_byte,
            end,
            extensions,
        ] = *<&[&str; PARTS]>::try_from(parts).ok()?;
        let upstream = match upstream {
            "" => None,
            name => Some(is_upstream_name(name).then(|| name.to_owned())?),
        };
        Some(Self {
            endpoint: Endpoint::parse(endpoint)?,
            streamed: match streamed {
                "0" => false,
                "1" => true,
                _ => return None,
            },
            upstream,
            input_tokens: number(input)?,
            cached_tokens: number(cached)?,
            output_tokens: number(output)?,
            latency_ms: number(latency)?,
            first_byte_ms: number(first_byte)?,
            end: CallEnd::parse(end)?,
            extensions: digits(extensions)?.parse().ok()?,
            billing: Billing::parse(details)?,
        })
    }

    /// Returns the object `call` of an entry. It has `billing` only if the word has a detail of it.
    pub fn shown(&self) -> Value {
        let mut call = serde_json::to_value(self).unwrap_or_default();
        if let (Some(billing), Some(call)) = (self.billing.shown(), call.as_object_mut()) {
            call.insert("billing".to_owned(), billing);
        }
        call
    }
}

/// Writes the word of an enum.
fn word<S: Serializer>(word: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(word)
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// Parses a number. An empty text is an unknown one.
fn number(text: &str) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    let number = digits(text)?.parse().ok()?;
    (number <= NUMBER_MAX).then_some(Some(number))
}

#[cfg(test)]
mod tests;
