//! Usage in the provider's answer (decisions D33, D64).

use bytes::Bytes;
use domain::measured::Endpoint;
use domain::money::Nanos;
use domain::price::{BadCost, EmbeddingsUsage, ResponsesUsage, Usage, reported_cost};
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sse::{Filter, Format, FoundUsage, ReadUsage, USAGE_BYTES_MAX};
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
    /// Whether reported costs are used.
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

/// The keys of an answer that are told apart.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
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
                        Field::Usage => fields.usage.replace(map.next_value()?).is_some(),
                        Field::ServiceTier => fields.service_tier.replace(map.next_value()?).is_some(),
                        Field::Other => {
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
    /// and [`read_closely`](Self::read_closely) then finds out what it is.
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

    /// Like [`read`](Self::read), for an answer of server-sent events to a call that did not ask for them: some
    /// providers go by the `Accept` of the request. The usage must be that of the whole answer.
    pub fn read_events(&self, plain: &Bytes) -> Reported {
        let nothing_is_redacted = Box::new(|_: &[u8]| None);
        let mut filter = Filter::new(self.format(), true, (nothing_is_redacted, self.of_events()));
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
mod tests {
    use super::*;
    use domain::price::USAGE_TOKENS_MAX;
    use proptest::prelude::*;

    fn reader(endpoint: Endpoint, cost_counts: bool) -> UsageReader {
        UsageReader {
            endpoint,
            cost_counts,
            tokens_max: USAGE_TOKENS_MAX,
        }
    }

    /// Returns usage and tier of an answer with a plausible usage.
    fn read(endpoint: Endpoint, body: &[u8]) -> Option<(Usage, Option<String>)> {
        let reported = reader(endpoint, true).read(body)?;
        Some((reported.usage.ok()??, reported.service_tier))
    }

    #[test]
    fn each_api_has_words_of_its_own() {
        for (endpoint, usage, [input, output]) in [
            (
                Endpoint::Chat,
                r#"{"prompt_tokens":9,"completion_tokens":2}"#,
                [9, 2],
            ),
            (
                Endpoint::Responses,
                r#"{"input_tokens":9,"output_tokens":2,"total_tokens":11}"#,
                [9, 2],
            ),
            (
                Endpoint::Embeddings,
                r#"{"prompt_tokens":9,"total_tokens":9}"#,
                [9, 0],
            ),
        ] {
            let whole = format!(r#"{{"usage":{usage},"service_tier":"flex"}}"#);
            let (read, tier) = read(endpoint, whole.as_bytes()).unwrap();
            assert_eq!([read.prompt_tokens, read.completion_tokens], [input, output]);
            assert_eq!(tier.as_deref(), Some("flex"));
            assert_eq!(reader(endpoint, false).tokens(usage.as_bytes()), Ok(read));
            for other in Endpoint::ALL.iter().filter(|other| **other != endpoint) {
                // A total alone is a usage. Fields of other endpoints next to it are not read.
                let is_part = *other == Endpoint::Embeddings || usage.contains("total_tokens");
                assert_eq!(
                    reader(*other, false).tokens(usage.as_bytes()).is_ok(),
                    is_part,
                    "{endpoint:?} {other:?}"
                );
            }
        }
    }

    #[test]
    fn an_array_is_no_usage_and_no_answer() {
        for bad in [
            r#"{"usage":[9,2,11,null,null]}"#,
            r#"[{"prompt_tokens":9,"completion_tokens":2},"default"]"#,
        ] {
            assert_eq!(read(Endpoint::Chat, bad.as_bytes()), None, "{bad}");
            let without_cost = reader(Endpoint::Chat, false).read(bad.as_bytes());
            assert!(
                without_cost.is_none_or(|reported| reported.usage == Err(BadUsage::Implausible)),
                "{bad}"
            );
        }
        let array = reader(Endpoint::Chat, false).tokens(b"[9,2,11,null,null]");
        assert_eq!(array, Err(BadUsage::Implausible));
    }

    /// Some providers stream to everybody whose `Accept` has `text/event-stream`.
    #[test]
    fn events_that_nobody_asked_for_are_read_for_their_usage() {
        const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
        const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2},\"service_tier\":\"flex\"}\n\n";
        let read = |events: &[&str]| {
            let reported = reader(Endpoint::Chat, false).read_events(&events.concat().into());
            (
                reported.usage.unwrap().map(|usage| usage.completion_tokens),
                reported.service_tier,
            )
        };
        let flex = Some("flex".to_owned());
        assert_eq!(read(&[TEXT, USAGE, "data: [DONE]\n\n"]), (Some(2), flex.clone()));
        assert_eq!(read(&[TEXT, USAGE]), (Some(2), flex.clone()));
        assert_eq!(read(&[USAGE, TEXT]), (None, flex), "text follows");
        assert_eq!(read(&[TEXT, "data: [DONE]\n\n"]), (None, None));
    }

    #[test]
    fn only_a_usual_answer_is_read_at_once() {
        const USAGE: &str = r#""usage":{"prompt_tokens":9,"completion_tokens":2}"#;
        let is_read =
            |counts: bool, answer: &[u8]| reader(Endpoint::Chat, counts).read_at_once(answer).is_some();
        let usual = format!("{{{USAGE}}}");
        assert!(is_read(false, usual.as_bytes()));
        assert!(!is_read(true, usual.as_bytes()), "its cost is read, too");
        for other in [
            "{}".to_owned(),
            format!("{{{USAGE},{USAGE}}}"),
            format!(r#"{{{USAGE},"service_tier":"a","service_tier":"a"}}"#),
            format!(r#"{{{USAGE},"usage":null}}"#),
            format!("{{{USAGE}{}}}", " ".repeat(USAGE_BYTES_MAX)),
        ] {
            assert!(
                !is_read(false, other.as_bytes()),
                "{}",
                &other[..other.len().min(100)]
            );
        }
        let not_utf8 = b"{\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"x\":\"\xff\"}}";
        assert!(!is_read(false, not_utf8));
    }

    /// Generates the members of an answer, some of them repeated or with escapes in their keys.
    fn members() -> impl Strategy<Value = Vec<String>> {
        let member = prop::sample::select(vec![
            r#""usage":null"#,
            r#""usage":{}"#,
            r#""usage":[9,2]"#,
            r#""usage":{"prompt_tokens":9,"completion_tokens":2}"#,
            r#""usage":{"prompt_tokens":9,"completion_tokens":2,"cost":0.5}"#,
            r#""usage":{"prompt_tokens":9,"prompt_tokens":8,"completion_tokens":2,"cost":0.5,"cost":0.25}"#,
            r#""usage":{"cost":0.25,"x":{"usage":{"prompt_tokens":1}}}"#,
            r#""us\u0061ge":{"prompt_tokens":7,"completion_tokens":1}"#,
            r#""service_tier":"flex""#,
            r#""service_tier":"""#,
            r#""service\u005ftier":"priority""#,
            r#""service_\tier":"priority""#,
            r#""x":{"usage":{"prompt_tokens":5,"completion_tokens":5},"service_tier":"flex"}"#,
            r#""choices":[]"#,
        ]);
        prop::collection::vec(member.prop_map(str::to_owned), 0..5)
    }

    proptest! {
        /// The quick reader differs from the thorough one in nothing but what it does not read at all.
        #[test]
        fn an_answer_is_read_at_once_as_it_is_read_closely(members in members(), bound in 1..20_u64) {
            let json = format!("{{{}}}", members.join(","));
            let reader = UsageReader { tokens_max: bound, ..reader(Endpoint::Chat, false) };
            if let Some(reported) = reader.read_at_once(json.as_bytes()) {
                let closely = reader.read_closely(json.as_bytes());
                prop_assert_eq!(format!("{:?}", Some(reported)), format!("{closely:?}"), "{}", json);
            }
        }

        /// A whole answer and a stream with the same JSON in its last event are read alike, wherever its pieces end.
        #[test]
        fn whole_answers_and_streams_are_read_alike(members in members(), cut: prop::sample::Index) {
            let json = format!("{{{}}}", members.join(","));
            prop_assume!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
            let reader = reader(Endpoint::Chat, true);
            let whole = reader.read(json.as_bytes()).unwrap();
            let events = Bytes::from(format!("data: {json}\n\ndata: [DONE]\n\n"));
            let mut filter = Filter::new(Format::Chat, true, (Box::new(|_| None), reader.of_events()));
            let cut = cut.index(events.len());
            for piece in [events.slice(..cut), events.slice(cut..)] {
                filter.push(&piece, &mut Vec::new());
            }
            let streamed = filter.usage().filter(|_| filter.usage_is_whole(true));
            let streamed = streamed.and_then(|json| reader.tokens(json).ok());
            prop_assert_eq!(whole.usage.unwrap_or(None), streamed, "{}", json);
            let cost = whole.cost.ok().flatten().map(Nanos::get);
            prop_assert_eq!(cost, filter.cost_nanos(), "{}", json);
        }
    }

    #[test]
    fn plausible_usage_is_read() {
        let whole = br#"{"id":"x","service_tier":"flex","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#;
        let (usage, tier) = read(Endpoint::Chat, whole).unwrap();
        assert_eq!((usage.prompt_tokens, tier.as_deref()), (9, Some("flex")));
        for no_tier in ["null", "\"\"", "1", "{\"a\":1}", "[\"flex\"]"] {
            let whole = format!(
                r#"{{"service_tier":{no_tier},"usage":{{"prompt_tokens":9,"completion_tokens":2}}}}"#
            );
            let (usage, tier) = read(Endpoint::Chat, whole.as_bytes()).unwrap();
            assert_eq!((usage.prompt_tokens, tier), (9, None));
        }
        let broken_content =
            b"{\"content\":\"\xff\",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}";
        assert_eq!(read(Endpoint::Chat, broken_content).unwrap().0.prompt_tokens, 9);
        for bad in [
            &b"{}"[..],
            b"[]",
            b"",
            br#"{"usage":null}"#,
            br#"{"usage":{}}"#,
            br#"{"usage":{"prompt_tokens":-1,"completion_tokens":2}}"#,
            br#"{"usage":{"prompt_tokens":1e12,"completion_tokens":2}}"#,
            br#"{"usage":{"prompt_tokens":9,"completion_tokens":2},"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
            br#"{"usage":{"prompt_tokens":9,"completion_tokens":2"#,
        ] {
            assert!(
                read(Endpoint::Chat, bad).is_none(),
                "{}",
                String::from_utf8_lossy(bad)
            );
        }
    }

    /// What an operator reads in the log. An answer without usage has no fault.
    #[test]
    fn the_fault_of_a_usage_is_named() {
        let bounded = UsageReader {
            tokens_max: 12,
            ..reader(Endpoint::Chat, false)
        };
        let counts = |prompt: u64, completion: u64| {
            format!(r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion}}}"#)
        };
        let usage = |text: &str| format!(r#"{{"usage":{text}}}"#);
        for (body, fault) in [
            (usage(&counts(12, 12)), None),
            (usage(&counts(13, 2)), Some(BadUsage::TooManyTokens(13))),
            (usage(&counts(2, 14)), Some(BadUsage::TooManyTokens(14))),
            (
                usage(r#"{"prompt_tokens":9,"total_tokens":22}"#),
                Some(BadUsage::TooManyTokens(13)),
            ),
            (usage(&counts(1, 1_000_000_001)), Some(BadUsage::Implausible)),
            (usage(&counts(0, 0)), Some(BadUsage::Implausible)),
            (usage("{}"), Some(BadUsage::Implausible)),
            (
                format!(r#"{{"usage":{0},"usage":{0}}}"#, counts(1, 1)),
                Some(BadUsage::Implausible),
            ),
            (usage("null"), None),
            ("{}".to_owned(), None),
        ] {
            let whole = bounded.read(body.as_bytes()).unwrap();
            assert_eq!(whole.usage.err(), fault, "{body}");
            let events = bounded.read_events(&format!("data: {body}\n\ndata: [DONE]\n\n").into());
            assert_eq!(events.usage.err(), fault, "{body}");
        }
        let of = |endpoint, json: &str| UsageReader { endpoint, ..bounded }.tokens(json.as_bytes());
        let response = r#"{"input_tokens":1,"output_tokens":13}"#;
        let too_many = Err(BadUsage::TooManyTokens(13));
        assert_eq!(of(Endpoint::Responses, response), too_many);
        assert_eq!(of(Endpoint::Embeddings, r#"{"total_tokens":13}"#), too_many);
    }

    #[test]
    fn a_cost_is_read_with_and_without_a_plausible_usage() {
        let cost = |body: &str| reader(Endpoint::Chat, true).read(body.as_bytes()).unwrap().cost;
        let counts = r#""prompt_tokens":9,"completion_tokens":2"#;
        for (usage, nanos) in [
            (format!("{{{counts},\"cost\":0.2}}"), Some(200_000_000)),
            ("{\"cost\":\"0.2\"}".to_owned(), Some(200_000_000)),
            (format!("{{{counts}}}"), None),
            ("null".to_owned(), None),
        ] {
            let cost = cost(&format!("{{\"usage\":{usage}}}"));
            assert_eq!(cost, Ok(nanos.map(Nanos::from_stored)), "{usage}");
        }
        assert!(cost(&format!("{{\"usage\":{{{counts},\"cost\":-1}}}}")).is_err());
    }
}
