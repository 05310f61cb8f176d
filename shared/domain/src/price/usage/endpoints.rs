//! The usage of the other endpoints, with other field names: parsed by the rules of [`Usage`].

use super::{CompletionDetails, PromptDetails, Usage, Wire};
use serde::Deserialize;

/// `usage` of a response (`POST /v1/responses`), where the prompt is called input and the completion output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ResponsesWire")]
pub struct ResponsesUsage(pub Usage);

/// `usage` of an embeddings call (`POST /v1/embeddings`), which has no completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "EmbeddingsWire")]
pub struct EmbeddingsUsage(pub Usage);

#[derive(Deserialize)]
struct ResponsesWire {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    input_tokens_details: Option<PromptDetails>,
    output_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct EmbeddingsWire {
    /// Some compatible providers (Voyage AI) send `total_tokens` alone.
    prompt_tokens: Option<u64>,
    /// Some compatible providers send zero. Any other value is charged like output.
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

impl TryFrom<ResponsesWire> for ResponsesUsage {
    type Error = &'static str;

    fn try_from(wire: ResponsesWire) -> Result<Self, Self::Error> {
        let wire = Wire {
            prompt_tokens: wire.input_tokens,
            completion_tokens: wire.output_tokens,
            total_tokens: wire.total_tokens,
            prompt_tokens_details: wire.input_tokens_details,
            completion_tokens_details: wire.output_tokens_details,
        };
        wire.try_into().map(Self)
    }
}

impl TryFrom<EmbeddingsWire> for EmbeddingsUsage {
    type Error = &'static str;

    fn try_from(wire: EmbeddingsWire) -> Result<Self, Self::Error> {
        let wire = Wire {
            prompt_tokens: wire.prompt_tokens,
            completion_tokens: wire.completion_tokens.or(Some(0)),
            total_tokens: wire.total_tokens,
            prompt_tokens_details: wire.prompt_tokens_details,
            completion_tokens_details: None,
        };
        wire.try_into().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn responses(json: &str) -> Option<Usage> {
        serde_json::from_str::<ResponsesUsage>(json)
            .ok()
            .map(|usage| usage.0)
    }

    fn embeddings(json: &str) -> Option<Usage> {
        serde_json::from_str::<EmbeddingsUsage>(json)
            .ok()
            .map(|usage| usage.0)
    }

    fn counts(prompt_tokens: u64, completion_tokens: u64) -> Usage {
        Usage {
            prompt_tokens,
            completion_tokens,
            cached_tokens: 0,
            cache_write_tokens: 0,
            cache_write_12h_tokens: 0,
            cache_write_30m_tokens: 0,
            prompt_audio_tokens: 0,
            completion_audio_tokens: 0,
            reasoning_tokens: 0,
        }
    }

    #[test]
    fn a_response_says_input_and_output() {
        let whole = r#"{"input_tokens": 2600, "input_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400,
            "cache_write_tokens_details": {"ttl_12h_tokens": 300, "ttl_30m_tokens": 100}}, "output_tokens": 300,
            "output_tokens_details": {"reasoning_tokens": 200}, "total_tokens": 2900}"#;
        let expected = Usage {
            cached_tokens: 2000,
            cache_write_tokens: 400,
            cache_write_12h_tokens: 300,
            cache_write_30m_tokens: 100,
            reasoning_tokens: 200,
            ..counts(2600, 300)
        };
        assert_eq!(responses(whole), Some(expected));
        for json in [
            r#"{"input_tokens": 9, "output_tokens": 2}"#,
            r#"{"input_tokens": 9, "output_tokens": 2, "total_tokens": null, "input_tokens_details": null}"#,
            r#"{"output_tokens": 2, "input_tokens": 9, "output_tokens_details": {}, "x": 1}"#,
        ] {
            assert_eq!(responses(json), Some(counts(9, 2)), "{json}");
        }
    }

    #[test]
    fn embeddings_have_no_completion() {
        for json in [
            r#"{"prompt_tokens": 9, "total_tokens": 9}"#,
            r#"{"prompt_tokens": 9}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": null, "prompt_tokens_details": null}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}"#,
            r#"{"total_tokens": 9}"#,
        ] {
            assert_eq!(embeddings(json), Some(counts(9, 0)), "{json}");
        }
        let more = r#"{"prompt_tokens": 9, "completion_tokens": 3}"#;
        assert_eq!(embeddings(more), Some(counts(9, 3)));
        let beside = r#"{"completion_tokens": 3, "total_tokens": 12}"#;
        assert_eq!(embeddings(beside), Some(counts(9, 3)));
        for json in ["{}", r#"{"completion_tokens": 3}"#, r#"{"total_tokens": 0}"#] {
            assert_eq!(embeddings(json), None, "{json}");
        }
    }

    #[test]
    fn tokens_only_in_the_total_count_as_output() {
        let whole = r#"{"input_tokens": 32, "output_tokens": 9, "total_tokens": 20041,
            "output_tokens_details": {"reasoning_tokens": 20000}}"#;
        let expected = Usage {
            reasoning_tokens: 20_000,
            ..counts(32, 20_009)
        };
        assert_eq!(responses(whole), Some(expected));
        let less = r#"{"input_tokens": 9, "output_tokens": 2, "total_tokens": 3}"#;
        assert_eq!(responses(less), Some(counts(9, 2)));
        let more = r#"{"prompt_tokens": 9, "total_tokens": 12}"#;
        assert_eq!(embeddings(more), Some(counts(9, 3)));
        let less = r#"{"prompt_tokens": 9, "total_tokens": 3}"#;
        assert_eq!(embeddings(less), Some(counts(9, 0)));
    }

    #[test]
    fn details_beside_their_total_and_missing_counts_are_charged() {
        let disjoint = r#"{"input_tokens": 9, "input_tokens_details": {"cached_tokens": 20}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 11}, "total_tokens": 45}"#;
        let expected = Usage {
            cached_tokens: 20,
            reasoning_tokens: 11,
            ..counts(29, 36)
        };
        assert_eq!(responses(disjoint), Some(expected));
        for (json, [input, output]) in [
            (r#"{"input_tokens": 13, "total_tokens": 5012}"#, [13, 4_999]),
            (
                r#"{"input_tokens": null, "output_tokens": 9, "total_tokens": 12}"#,
                [3, 9],
            ),
            (r#"{"total_tokens": 12}"#, [0, 12]),
        ] {
            assert_eq!(responses(json), Some(counts(input, output)), "{json}");
        }
        let cached = r#"{"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 10}}"#;
        let expected = Usage {
            cached_tokens: 10,
            ..counts(19, 0)
        };
        assert_eq!(embeddings(cached), Some(expected));
    }

    #[test]
    fn nonsense_is_no_usage() {
        for json in [
            "null",
            "{}",
            "[]",
            r#"{"prompt_tokens": 9, "completion_tokens": 5}"#,
            r#"{"input_tokens": 9}"#,
            r#"{"output_tokens": 9}"#,
            r#"{"input_tokens": 0, "output_tokens": 0}"#,
            r#"{"input_tokens": -1, "output_tokens": 5}"#,
            r#"{"input_tokens": 1.5, "output_tokens": 5}"#,
            r#"{"input_tokens": 1000000001, "output_tokens": 5}"#,
            r#"{"input_tokens": 5, "output_tokens": 1000000001}"#,
            r#"{"input_tokens": 5, "output_tokens": 5, "total_tokens": 1000000001}"#,
            r#"{"input_tokens": 5, "output_tokens": 5, "input_tokens": 1}"#,
            r#"{"input_tokens": 5, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 1000000000}}"#,
            r#"{"input_tokens": 5, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": -6}}"#,
        ] {
            assert_eq!(responses(json), None, "{json}");
        }
        for json in [
            "null",
            "{}",
            r#"{"input_tokens": 9}"#,
            r#"{"completion_tokens": 9}"#,
            r#"{"prompt_tokens": 0}"#,
            r#"{"prompt_tokens": -1}"#,
            r#"{"prompt_tokens": "9"}"#,
            r#"{"prompt_tokens": 1000000001}"#,
            r#"{"prompt_tokens": 9, "total_tokens": 1000000001}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": -1}"#,
            r#"{"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": -1}}"#,
        ] {
            assert_eq!(embeddings(json), None, "{json}");
        }
    }
}
