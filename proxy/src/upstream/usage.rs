//! Usage in the provider's answer (decisions D33, D64).

use super::encoding;
use domain::measured::Endpoint;
use domain::price::{EmbeddingsUsage, ResponsesUsage, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The part of an answer that the settlement needs.
#[derive(Debug)]
pub struct Reported {
    /// Never empty, negative or absurd.
    pub usage: Usage,
    /// The tier that served the call.
    pub service_tier: Option<String>,
}

#[derive(Deserialize)]
struct Answer<'a, U> {
    usage: Option<U>,
    #[serde(borrow)]
    service_tier: Option<&'a RawValue>,
}

/// Reads `usage` and `service_tier`; `None` if the answer has no plausible usage.
pub fn read(endpoint: Endpoint, body: &[u8], content_encoding: Option<&[u8]>) -> Option<Reported> {
    let plain = encoding::decode(body, content_encoding)?;
    match endpoint {
        Endpoint::Chat => of_answer(&plain, |usage: Usage| usage),
        Endpoint::Responses => of_answer(&plain, |ResponsesUsage(usage)| usage),
        Endpoint::Embeddings => of_answer(&plain, |EmbeddingsUsage(usage)| usage),
    }
}

fn of_answer<'a, U: Deserialize<'a>>(plain: &'a [u8], usage: impl Fn(U) -> Usage) -> Option<Reported> {
    // Parsing from bytes checks each string for UTF-8 again. An answer that is not UTF-8 may still have usage.
    let read = match simdutf8::basic::from_utf8(plain) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(plain),
    };
    let answer: Answer<'_, U> = read.ok()?;
    Some(Reported {
        usage: usage(answer.usage?),
        service_tier: answer.service_tier.and_then(tier),
    })
}

/// The tier's name. What is none says nothing, and takes nothing from the usage beside it.
fn tier(json: &RawValue) -> Option<String> {
    let name: String = serde_json::from_str(json.get()).ok()?;
    (!name.is_empty()).then_some(name)
}

/// Reads a `usage` object that was found in a stream; `None` if it is not plausible.
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

    fn read(body: &[u8], content_encoding: Option<&[u8]>) -> Option<Reported> {
        super::read(Endpoint::Chat, body, content_encoding)
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
            let reported = super::read(endpoint, whole.as_bytes(), None).unwrap();
            assert_eq!(
                [reported.usage.prompt_tokens, reported.usage.completion_tokens],
                [input, output]
            );
            assert_eq!(of_object(endpoint, usage.as_bytes()), Some(reported.usage));
            for other in Endpoint::ALL.iter().filter(|other| **other != endpoint) {
                // A total alone is a usage, and what other words say beside it is not read.
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
        let reported = read(whole, None).unwrap();
        assert_eq!(reported.usage.prompt_tokens, 9);
        assert_eq!(reported.service_tier.as_deref(), Some("flex"));
        for no_tier in ["null", "\"\"", "1", "{\"a\":1}", "[\"flex\"]"] {
            let whole = format!(
                r#"{{"service_tier":{no_tier},"usage":{{"prompt_tokens":9,"completion_tokens":2}}}}"#
            );
            let reported = read(whole.as_bytes(), None).unwrap();
            assert_eq!((reported.usage.prompt_tokens, reported.service_tier), (9, None));
        }
        let broken_content =
            b"{\"content\":\"\xff\",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}";
        assert_eq!(read(broken_content, None).unwrap().usage.prompt_tokens, 9);
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
            assert!(read(bad, None).is_none(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
