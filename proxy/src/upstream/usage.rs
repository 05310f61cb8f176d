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
    /// Never empty, negative or implausible; `None` if the answer has no such usage.
    pub usage: Option<Usage>,
    /// The tier that served the call.
    pub service_tier: Option<String>,
    /// The cost that the provider reports, if reported costs are used.
    pub cost: Result<Option<Nanos>, BadCost>,
}

/// The fields of an answer that determine its cost.
#[derive(Default)]
struct UsageFields<'a> {
    usage: Option<&'a RawValue>,
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

impl<'de> Deserialize<'de> for UsageFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = UsageFields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = UsageFields::default();
                while let Some(field) = map.next_key()? {
                    let place = match field {
                        Field::Usage => &mut fields.usage,
                        Field::ServiceTier => &mut fields.service_tier,
                        Field::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    fields.is_ambiguous |= place.replace(map.next_value()?).is_some();
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
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

/// Reads `usage`, its cost if reported costs are used, and `service_tier`; `None` if the answer cannot be read. A usage
/// is read as in a stream: not if it is ambiguous, or longer than [`USAGE_BYTES_MAX`].
pub fn read(endpoint: Endpoint, plain: &[u8], cost_counts: bool) -> Option<Reported> {
    let fields: UsageFields<'_> = parse(plain)?;
    let usage = fields.usage.map(|usage| usage.get().as_bytes());
    let is_readable = |usage: &&[u8]| !fields.is_ambiguous && usage.len() <= USAGE_BYTES_MAX;
    let usage = usage.filter(is_readable).unwrap_or_default();
    Some(Reported {
        usage: of_object(endpoint, usage),
        service_tier: fields.service_tier.and_then(tier),
        cost: cost_of(usage, cost_counts),
    })
}

/// Like [`read`], for an answer of server-sent events to a call that did not ask for them: some providers go by the
/// `Accept` of the request. The usage must be that of the whole answer.
pub fn read_events(endpoint: Endpoint, plain: &Bytes, cost_counts: bool) -> Reported {
    let nothing_is_redacted = Box::new(|_: &[u8]| None);
    let read_usage = found_usage(endpoint, cost_counts);
    let mut filter = Filter::new(format_of(endpoint), true, (nothing_is_redacted, read_usage));
    filter.push(plain, &mut Vec::new());
    filter.close(&mut Vec::new());
    let whole = filter.usage().filter(|_| filter.usage_is_whole(true));
    Reported {
        usage: whole.and_then(|json| of_object(endpoint, json)),
        service_tier: filter.service_tier().map(str::to_owned),
        cost: Ok(filter.cost_nanos().map(Nanos::from_stored)),
    }
}

/// Returns the format of the events of an endpoint.
pub const fn format_of(endpoint: Endpoint) -> Format {
    match endpoint {
        Endpoint::Responses => Format::Responses,
        Endpoint::Chat | Endpoint::Embeddings => Format::Chat,
    }
}

/// Returns what reads a `usage` object of an event, with its cost if reported costs are used.
pub fn found_usage(endpoint: Endpoint, cost_counts: bool) -> ReadUsage {
    Box::new(move |json: &[u8]| FoundUsage {
        has_tokens: of_object(endpoint, json).is_some(),
        cost_nanos: cost_of(json, cost_counts).ok().flatten().map(Nanos::get),
    })
}

/// Returns the cost in a `usage` object, if reported costs are used.
fn cost_of(usage: &[u8], cost_counts: bool) -> Result<Option<Nanos>, BadCost> {
    match cost_counts {
        true => reported_cost(usage),
        false => Ok(None),
    }
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
    let name: String = serde_json::from_str(json.get()).ok()?;
    (!name.is_empty()).then_some(name)
}

/// Reads a `usage` object found in a stream; `None` if it is implausible.
pub fn of_object(endpoint: Endpoint, json: &[u8]) -> Option<Usage> {
    match endpoint {
        Endpoint::Chat => parse(json),
        Endpoint::Responses => parse(json).map(|ResponsesUsage(usage)| usage),
        Endpoint::Embeddings => parse(json).map(|EmbeddingsUsage(usage)| usage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns usage and tier of an answer with a plausible usage.
    fn read(endpoint: Endpoint, body: &[u8]) -> Option<(Usage, Option<String>)> {
        let reported = super::read(endpoint, body, true)?;
        Some((reported.usage?, reported.service_tier))
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
            assert_eq!(of_object(endpoint, usage.as_bytes()), Some(read));
            for other in Endpoint::ALL.iter().filter(|other| **other != endpoint) {
                // A total alone is a usage. Fields of other endpoints next to it are not read.
                let is_part = *other == Endpoint::Embeddings || usage.contains("total_tokens");
                assert_eq!(
                    of_object(*other, usage.as_bytes()).is_some(),
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
            let without_cost = super::read(Endpoint::Chat, bad.as_bytes(), false);
            assert!(
                without_cost.is_none_or(|reported| reported.usage.is_none()),
                "{bad}"
            );
        }
        assert_eq!(of_object(Endpoint::Chat, b"[9,2,11,null,null]"), None);
    }

    /// Some providers stream to everybody whose `Accept` has `text/event-stream`.
    #[test]
    fn events_that_nobody_asked_for_are_read_for_their_usage() {
        const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
        const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2},\"service_tier\":\"flex\"}\n\n";
        let read = |events: &[&str]| {
            let reported = read_events(Endpoint::Chat, &events.concat().into(), false);
            (
                reported.usage.map(|usage| usage.completion_tokens),
                reported.service_tier,
            )
        };
        let flex = Some("flex".to_owned());
        assert_eq!(read(&[TEXT, USAGE, "data: [DONE]\n\n"]), (Some(2), flex.clone()));
        assert_eq!(read(&[TEXT, USAGE]), (Some(2), flex.clone()));
        assert_eq!(read(&[USAGE, TEXT]), (None, flex), "text follows");
        assert_eq!(read(&[TEXT, "data: [DONE]\n\n"]), (None, None));
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
        /// A whole answer and a stream with the same JSON in its last event are read alike, wherever its pieces end.
        #[test]
        fn whole_answers_and_streams_are_read_alike(members in members(), cut: prop::sample::Index) {
            let json = format!("{{{}}}", members.join(","));
            prop_assume!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
            let whole = super::read(Endpoint::Chat, json.as_bytes(), true).unwrap();
            let events = Bytes::from(format!("data: {json}\n\ndata: [DONE]\n\n"));
            let mut filter = Filter::new(Format::Chat, true, (Box::new(|_| None), found_usage(Endpoint::Chat, true)));
            let cut = cut.index(events.len());
            for piece in [events.slice(..cut), events.slice(cut..)] {
                filter.push(&piece, &mut Vec::new());
            }
            let streamed = filter.usage().filter(|_| filter.usage_is_whole(true));
            prop_assert_eq!(whole.usage, streamed.and_then(|json| of_object(Endpoint::Chat, json)), "{}", json);
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

    #[test]
    fn a_cost_is_read_with_and_without_a_plausible_usage() {
        let cost = |body: &str| super::read(Endpoint::Chat, body.as_bytes(), true).unwrap().cost;
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
