//! Usage in the provider's answer (decisions D33, D64).

use bytes::Bytes;
use domain::measured::Endpoint;
use domain::money::Nanos;
use domain::price::{BadCost, EmbeddingsUsage, ResponsesUsage, Usage, reported_cost};
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sse::{Format, FoundUsage, ReadUsage, StreamFilter, USAGE_BYTES_MAX};
use std::marker::PhantomData;

/// The part of an answer that the settlement needs.
#[derive(Debug)]
pub struct Reported {
    /// `None` if the answer has no usage.
    pub usage: Result<Option<Usage>, BadUsage>,
    /// The tier that served the call.
    pub service_tier: Option<String>,
    /// The cost that the provider reports, if reported costs are used.
    pub cost: Result<Option<Nanos>, BadCost>,
}

/// The reason why a reported usage does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadUsage {
    /// Tokens of the prompt or of the completion, more than the upstream's `usage_tokens_max`.
    #[error("it has {0} tokens, more than usage_tokens_max of the upstream")]
    TooManyTokens(u64),
    /// Ambiguous, too long, or with counts that are missing, all zero, negative or above any bound.
    #[error("it cannot be read, or no call has such counts")]
    Implausible,
}

/// The rules by which the usage in the answers of an upstream's endpoint is read.
#[derive(Debug, Clone, Copy)]
pub struct UsageReader {
    /// The endpoint that was called.
    pub endpoint: Endpoint,
    /// True if reported costs are used.
    pub cost_counts: bool,
    /// Most tokens of a prompt, and of a completion.
    pub tokens_max: u64,
}

/// The fields of an answer that determine its cost, with the usage as its text, or read.
struct UsageFields<'a, U> {
    usage: Option<U>,
    service_tier: Option<&'a RawValue>,
    /// One of them occurs twice: parsers differ in which value they take.
    is_ambiguous: bool,
}

/// The keys of an answer that are read; the others are skipped.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum AnswerKey {
    Usage,
    ServiceTier,
    #[serde(other)]
    Other,
}

impl<'de, U: Deserialize<'de>> Deserialize<'de> for UsageFields<'de, U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor<U>(PhantomData<U>);
        impl<'de, U: Deserialize<'de>> Visitor<'de> for FieldsVisitor<U> {
            type Value = UsageFields<'de, U>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = UsageFields {
                    usage: None,
                    service_tier: None,
                    is_ambiguous: false,
                };
                while let Some(field) = map.next_key()? {
                    fields.is_ambiguous |= match field {
                        AnswerKey::Usage => fields.usage.replace(map.next_value()?).is_some(),
                        AnswerKey::ServiceTier => fields.service_tier.replace(map.next_value()?).is_some(),
                        AnswerKey::Other => {
                            map.next_value::<IgnoredAny>()?;
                            false
                        }
                    };
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor(PhantomData))
    }
}

/// A value that is a JSON object: a derived reader takes an array for an object without names.
struct Object<U>(U);

impl<'de, U: Deserialize<'de>> Deserialize<'de> for Object<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<U>(PhantomData<U>);
        impl<'de, U: Deserialize<'de>> Visitor<'de> for ObjectVisitor<U> {
            type Value = Object<U>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                U::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

impl UsageReader {
    /// Reads `usage`, its cost if reported costs are used, and `service_tier`; `None` if the answer cannot be read. A
    /// usage is read as in a stream: not if it is ambiguous, or longer than [`USAGE_BYTES_MAX`].
    pub fn read(&self, plain: &[u8]) -> Option<Reported> {
        self.read_at_once(plain).or_else(|| self.read_closely(plain))
    }

    /// Reads a usual answer in one pass: a short one with exactly one usage, which counts. `None` for any other answer,
    /// which [`read_closely`](Self::read_closely) then reads.
    fn read_at_once(&self, plain: &[u8]) -> Option<Reported> {
        if self.cost_counts || plain.len() > USAGE_BYTES_MAX {
            return None;
        }
        let plain = simdutf8::basic::from_utf8(plain).ok()?;
        let (usage, service_tier) = match self.endpoint {
            Endpoint::Chat => one_usage(plain)?,
            Endpoint::Responses => one_usage(plain).map(|(ResponsesUsage(usage), tier)| (usage, tier))?,
            Endpoint::Embeddings => one_usage(plain).map(|(EmbeddingsUsage(usage), tier)| (usage, tier))?,
        };
        Some(Reported {
            usage: self.within_bound(usage).map(Some),
            service_tier: service_tier.and_then(tier),
            cost: Ok(None),
        })
    }

    /// Finds the usage of any answer, and then reads it.
    fn read_closely(&self, plain: &[u8]) -> Option<Reported> {
        let fields: UsageFields<'_, &RawValue> = parse(plain)?;
        let usage = fields.usage.map(|usage| usage.get().as_bytes());
        let usage = usage.filter(|usage| *usage != b"null");
        let is_readable = |usage: &&[u8]| !fields.is_ambiguous && usage.len() <= USAGE_BYTES_MAX;
        let readable = usage.filter(is_readable).unwrap_or_default();
        Some(Reported {
            usage: usage.map(|_| self.tokens(readable)).transpose(),
            service_tier: fields.service_tier.and_then(tier),
            cost: self.cost(readable),
        })
    }

    /// Like [`read`](Self::read), for an answer of server-sent events to a call that did not request them: some
    /// providers go by the `Accept` of the request. The usage must be that of the whole answer.
    pub fn read_events(&self, plain: &Bytes) -> Reported {
        let nothing_is_redacted = Box::new(|_: &[u8]| None);
        let mut filter = StreamFilter::new(self.format(), true, (nothing_is_redacted, self.of_events()));
        filter.push(plain, &mut Vec::new());
        filter.close(&mut Vec::new());
        let whole = filter.usage().filter(|_| filter.usage_is_whole(true));
        let json = whole.or(filter.bad_usage());
        Reported {
            usage: json.map(|json| self.tokens(json)).transpose(),
            service_tier: filter.service_tier().map(str::to_owned),
            cost: Ok(filter.cost_nanos().map(Nanos::from_stored)),
        }
    }

    /// Returns the format of the endpoint's events.
    pub const fn format(&self) -> Format {
        match self.endpoint {
            Endpoint::Responses => Format::Responses,
            Endpoint::Chat | Endpoint::Embeddings => Format::Chat,
        }
    }

    /// Returns the function that reads a `usage` object of an event.
    pub fn of_events(self) -> ReadUsage {
        Box::new(move |json: &[u8]| FoundUsage {
            has_tokens: self.tokens(json).is_ok(),
            cost_nanos: self.cost(json).ok().flatten().map(Nanos::get),
        })
    }

    /// Reads a `usage` object.
    ///
    /// # Errors
    /// The usage does not count.
    pub fn tokens(&self, json: &[u8]) -> Result<Usage, BadUsage> {
        let usage: Option<Usage> = match self.endpoint {
            Endpoint::Chat => parse(json),
            Endpoint::Responses => parse(json).map(|ResponsesUsage(usage)| usage),
            Endpoint::Embeddings => parse(json).map(|EmbeddingsUsage(usage)| usage),
        };
        self.within_bound(usage.ok_or(BadUsage::Implausible)?)
    }

    /// Refuses more tokens than the upstream's bound.
    fn within_bound(&self, usage: Usage) -> Result<Usage, BadUsage> {
        match usage.largest_count() {
            tokens if tokens > self.tokens_max => Err(BadUsage::TooManyTokens(tokens)),
            _ => Ok(usage),
        }
    }

    /// Returns the cost in a `usage` object, if reported costs are used.
    fn cost(&self, usage: &[u8]) -> Result<Option<Nanos>, BadCost> {
        match self.cost_counts {
            true => reported_cost(usage),
            false => Ok(None),
        }
    }
}

/// Reads an answer with exactly one usage, and the text of its service tier. `None` for any other answer.
fn one_usage<'a, U: Deserialize<'a>>(plain: &'a str) -> Option<(U, Option<&'a RawValue>)> {
    let Object(fields): Object<UsageFields<'_, Object<U>>> = serde_json::from_str(plain).ok()?;
    let usage = fields.usage.filter(|_| !fields.is_ambiguous);
    usage.map(|Object(usage)| (usage, fields.service_tier))
}

/// Parsing from bytes checks each string for UTF-8 again. An answer that is not UTF-8 may still have usage.
fn parse<'a, T: Deserialize<'a>>(plain: &'a [u8]) -> Option<T> {
    let Object(answer) = match simdutf8::basic::from_utf8(plain) {
        Ok(text) => serde_json::from_str(text).ok(),
        Err(_) => serde_json::from_slice(plain).ok(),
    }?;
    Some(answer)
}

/// Returns the tier's name. An invalid one is ignored, and does not affect the usage next to it.
fn tier(json: &RawValue) -> Option<String> {
    let plain = json
        .get()
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    let name = match plain.filter(|name| !name.contains('\\')) {
        Some(name) => name.to_owned(),
        None => serde_json::from_str(json.get()).ok()?,
    };
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests;
