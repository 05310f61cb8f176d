//! Billing details of a call, from which its charge can be recomputed by the price table: the parts `key=value` behind
//! the measurements in the word, and the object `billing` of `call`.

use super::NUMBER_MAX;
use crate::money::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest prefix in a word, in bytes.
const PREFIX_MAX: usize = 64;
/// Longest name of a tier in a word, in bytes.
const TIER_MAX: usize = 32;
/// Stands for a name that cannot be written: too long, or with other characters.
pub const UNSPELT: &str = "?";
/// Value of a flag.
const SET: &str = "1";
/// The provider's status that is not written.
const OK: u16 = 200;

/// Details of one call that determine its charge beside its model, the tokens of prompt and answer, and the tokens that
/// the provider read from its cache. The default is an ordinary call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Billing {
    /// `service_tier` of the request.
    pub tier_asked: Option<String>,
    /// `service_tier` of the answer.
    pub tier_reported: Option<String>,
    /// Of the answer's tokens: reasoning.
    pub reasoning_tokens: u64,
    /// Of the prompt's tokens: written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Of the written tokens: reported as kept for 12 hours.
    pub cache_write_12h_tokens: u64,
    /// Of the written tokens: reported as kept for 30 minutes.
    pub cache_write_30m_tokens: u64,
    /// Of the prompt's tokens: sound.
    pub audio_input_tokens: u64,
    /// Of the answer's tokens: sound.
    pub audio_output_tokens: u64,
    /// True if a web search was charged.
    pub web_search: bool,
    /// True if the request set a longer lifetime in the provider's cache than the default.
    pub long_cache: bool,
    /// The cost that the provider reported, if it is the charge because it exceeded the computed one. The object has
    /// its double, which is hashed, and its exact count of nano-USD.
    #[serde(skip)]
    pub reported_cost: Option<Nanos>,
    /// The upstream's `price_prefix`, if it is not the default one.
    pub price_prefix: Option<String>,
    /// The provider's HTTP status, if it answered with another one than 200.
    pub provider_status: Option<u16>,
}

impl Billing {
    /// Returns whether the word of the call has no part of it.
    pub fn is_ordinary(&self) -> bool {
        *self == Self::default()
    }

    /// Appends `,key=value` for each detail that is not the default, in a fixed order. Numbers that
    /// [`parse`](Self::parse) would refuse are left out, and such a name is written as [`UNSPELT`].
    pub(super) fn push_to(&self, word: &mut String) {
        let mut digits = itoa::Buffer::new();
        let mut push = |key: &str, value: &str| {
            for part in [",", key, "=", value] {
                word.push_str(part);
            }
        };
        for (key, tier) in [("asked", &self.tier_asked), ("tier", &self.tier_reported)] {
            if let Some(tier) = tier {
                push(key, if is_tier(tier) { tier } else { UNSPELT });
            }
        }
        for (key, tokens) in [
            ("reasoning", self.reasoning_tokens),
            ("written", self.cache_write_tokens),
            ("written12h", self.cache_write_12h_tokens),
            ("written30m", self.cache_write_30m_tokens),
            ("audioin", self.audio_input_tokens),
            ("audioout", self.audio_output_tokens),
        ] {
            if (1..=NUMBER_MAX).contains(&tokens) {
                push(key, digits.format(tokens));
            }
        }
        for (key, is_set) in [("search", self.web_search), ("longcache", self.long_cache)] {
            if is_set {
                push(key, SET);
            }
        }
        if let Some(cost) = self.reported_cost.filter(|cost| is_cost(cost.get())) {
            push("cost", digits.format(cost.get()));
        }
        if let Some(prefix) = &self.price_prefix {
            push("prefix", if is_prefix(prefix) { prefix } else { UNSPELT });
        }
        if let Some(status) = self.provider_status.filter(|status| is_status(*status)) {
            push("status", digits.format(status));
        }
    }

    /// Parses the parts of [`push_to`](Self::push_to); `None` if one is malformed, unknown, repeated, out of order or
    /// the default.
    pub(super) fn parse(parts: &[&str]) -> Option<Self> {
        let mut parts = Parts(parts);
        let billing = Self {
            tier_asked: parts.name("asked", is_tier)?,
            tier_reported: parts.name("tier", is_tier)?,
            reasoning_tokens: parts.tokens("reasoning")?,
            cache_write_tokens: parts.tokens("written")?,
            cache_write_12h_tokens: parts.tokens("written12h")?,
            cache_write_30m_tokens: parts.tokens("written30m")?,
            audio_input_tokens: parts.tokens("audioin")?,
            audio_output_tokens: parts.tokens("audioout")?,
            web_search: parts.flag("search")?,
            long_cache: parts.flag("longcache")?,
            reported_cost: parts.number("cost", is_cost)?.map(Nanos::from_stored),
            price_prefix: parts.name("prefix", is_prefix)?,
            provider_status: match parts
                .number("status", |status| u16::try_from(status).is_ok_and(is_status))?
            {
                Some(status) => Some(u16::try_from(status).ok()?),
                None => None,
            },
        };
        parts.0.is_empty().then_some(billing)
    }

    /// Returns the object `billing`, which has only the details that are not the default; `None` without any.
    pub fn shown(&self) -> Option<Value> {
        if self.is_ordinary() {
            return None;
        }
        let mut shown = serde_json::to_value(self).ok()?;
        let fields = shown.as_object_mut()?;
        fields.retain(|_, value| !matches!(value, Value::Null | Value::Bool(false)) && *value != 0);
        if let Some(cost) = self.reported_cost {
            fields.insert("reportedCostUsd".to_owned(), cost.as_double().into());
            fields.insert("reportedCostNanos".to_owned(), cost.get().to_string().into());
        }
        Some(shown)
    }

    /// Reads the object of [`shown`](Self::shown). A missing detail is the default, and so are all details of a
    /// malformed object.
    pub(crate) fn from_json(billing: &Map<String, Value>) -> Self {
        let cost = billing.get("reportedCostNanos").and_then(Value::as_str);
        Self {
            reported_cost: cost.and_then(|nanos| nanos.parse().ok()).map(Nanos::from_stored),
            ..Self::deserialize(billing).unwrap_or_default()
        }
    }
}

/// The parts that are not read yet. Each reader takes the first one if it has the key, and returns the default
/// otherwise; `None` for a malformed value.
struct Parts<'a>(&'a [&'a str]);

impl<'a> Parts<'a> {
    fn take(&mut self, key: &str) -> Option<&'a str> {
        let (first, rest) = self.0.split_first()?;
        let value = first.strip_prefix(key)?.strip_prefix('=')?;
        self.0 = rest;
        Some(value)
    }

    fn name(&mut self, key: &str, is_valid: fn(&str) -> bool) -> Option<Option<String>> {
        match self.take(key) {
            Some(name) if is_valid(name) || name == UNSPELT => Some(Some(name.to_owned())),
            Some(_) => None,
            None => Some(None),
        }
    }

    fn number(&mut self, key: &str, is_valid: impl Fn(u64) -> bool) -> Option<Option<u64>> {
        let Some(text) = self.take(key) else {
            return Some(None);
        };
        let number = super::digits(text).filter(|digits| !digits.starts_with('0'))?;
        let number = number.parse().ok()?;
        is_valid(number).then_some(Some(number))
    }

    fn tokens(&mut self, key: &str) -> Option<u64> {
        let tokens = self.number(key, |tokens| tokens <= NUMBER_MAX)?;
        Some(tokens.unwrap_or(0))
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        match self.take(key) {
            Some(SET) => Some(true),
            Some(_) => None,
            None => Some(false),
        }
    }
}

/// Returns whether a word names the tier: 1 to [`TIER_MAX`] characters of `a-z`, `0-9`, `_`, `.` and `-`.
fn is_tier(name: &str) -> bool {
    let is_allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-');
    (1..=TIER_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Returns whether a word has the prefix: printable, without a comma. An empty one means the prices of `[upstream]`.
fn is_prefix(prefix: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b',';
    prefix.len() <= PREFIX_MAX && prefix.bytes().all(is_allowed)
}

const fn is_cost(nanos: u64) -> bool {
    nanos > 0 && nanos <= Nanos::MAX.get()
}

fn is_status(status: u16) -> bool {
    (100..=999).contains(&status) && status != OK
}
