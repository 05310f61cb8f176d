//! Usage in the provider's answer (decisions D33, D64).

use super::encoding;
use domain::measured::Endpoint;
use domain::money::Nanos;
use domain::price::{BadCost, EmbeddingsUsage, ResponsesUsage, Usage, reported_cost};
use serde::Deserialize;
use serde_json::value::RawValue;

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

/// An answer whose usage has the type `U`: its tokens, or its raw JSON.
#[derive(Deserialize)]
struct Answer<'a, U> {
    usage: Option<U>,
    #[serde(borrow)]
    service_tier: Option<&'a RawValue>,
}

/// Reads `usage`, its cost if reported costs are used, and `service_tier`; `None` if the answer cannot be read.
pub fn read(
    endpoint: Endpoint,
    body: &[u8],
    content_encoding: Option<&[u8]>,
    cost_counts: bool,
) -> Option<Reported> {
    let plain = encoding::decode(body, content_encoding)?;
    let tokens = if cost_counts {
        None
    } else {
        tokens_alone(endpoint, &plain)
    };
    tokens.or_else(|| with_cost(endpoint, &plain, cost_counts))
}

/// Reads tokens and tier in one pass. Also `None` for an implausible usage.
fn tokens_alone(endpoint: Endpoint, plain: &[u8]) -> Option<Reported> {
    fn pass<'a, U: Deserialize<'a>>(plain: &'a [u8], usage: fn(U) -> Usage) -> Option<Reported> {
        let answer: Answer<'a, U> = parse(plain)?;
        Some(Reported {
            usage: Some(usage(answer.usage?)),
            service_tier: answer.service_tier.and_then(tier),
            cost: Ok(None),
        })
    }
    match endpoint {
        Endpoint::Chat => pass(plain, |usage: Usage| usage),
        Endpoint::Responses => pass(plain, |ResponsesUsage(usage)| usage),
        Endpoint::Embeddings => pass(plain, |EmbeddingsUsage(usage)| usage),
    }
}

/// Finds the usage and reads each of its parts separately, so that an invalid part does not affect the others.
fn with_cost(endpoint: Endpoint, plain: &[u8], cost_counts: bool) -> Option<Reported> {
    let answer: Answer<'_, &RawValue> = parse(plain)?;
    let usage = answer.usage.map_or(&b""[..], |usage| usage.get().as_bytes());
    Some(Reported {
        usage: of_object(endpoint, usage),
        service_tier: answer.service_tier.and_then(tier),
        cost: if cost_counts {
            reported_cost(usage)
        } else {
            Ok(None)
        },
    })
}

/// Parsing from bytes checks each string for UTF-8 again. An answer that is not UTF-8 may still have usage.
fn parse<'a, T: Deserialize<'a>>(plain: &'a [u8]) -> Option<T> {
    match simdutf8::basic::from_utf8(plain) {
        Ok(text) => serde_json::from_str(text).ok(),
        Err(_) => serde_json::from_slice(plain).ok(),
    }
}

/// Returns the tier's name. An invalid one is ignored, and does not affect the usage next to it.
fn tier(json: &RawValue) -> Option<String> {
    let name: String = serde_json::from_str(json.get()).ok()?;
    (!name.is_empty()).then_some(name)
}

/// Reads a `usage` object found in a stream; `None` if it is implausible.
pub fn of_object(endpoint: Endpoint, json: &[u8]) -> Option<Usage> {
    match endpoint {
        Endpoint::Chat => serde_json::from_slice(json).ok(),
        Endpoint::Responses => serde_json::from_slice(json)
            .ok()
            .map(|ResponsesUsage(usage)| usage),
        Endpoint::Embeddings => serde_json::from_slice(json)
            .ok()
            .map(|EmbeddingsUsage(usage)| usage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns usage and tier of an answer with a plausible usage.
    fn read(endpoint: Endpoint, body: &[u8]) -> Option<(Usage, Option<String>)> {
        let reported = super::read(endpoint, body, None, true)?;
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
        let cost = |body: &str| {
            super::read(Endpoint::Chat, body.as_bytes(), None, true)
                .unwrap()
                .cost
        };
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
