//! Token counts in the upstream's `usage`, accepted only if plausible (decisions D33, D64).

mod endpoints;

pub use endpoints::{EmbeddingsUsage, ResponsesUsage};

use serde::Deserialize;

/// Beyond the tokens of any call.
const MAX_TOKENS: u64 = 1_000_000_000;

/// What a call used, as OpenAI documents it: each detail is part of its total, and the totals of prompt and completion
/// are the whole.
///
/// Some compatible providers bill tokens that only `total_tokens` has: reasoning (Gemini, xAI) or the prompts of tools
/// (Gemini). What it has beyond both counts is completion here, the dearer kind (specification §4.4 step 7: the real
/// cost is what the provider reports).
///
/// Parsed from the provider's JSON. Empty, negative, absurd or contradictory counts are errors; then the estimate stays
/// charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Wire")]
pub struct Usage {
    /// Tokens of the prompt, cached and audio ones included.
    pub prompt_tokens: u64,
    /// Tokens of the completion, reasoning, audio, rejected predictions and what only `total_tokens` has included.
    pub completion_tokens: u64,
    /// Of the prompt: read from the provider's cache.
    pub cached_tokens: u64,
    /// Of the prompt: written to the provider's cache, and none of the cached ones.
    pub cache_write_tokens: u64,
    /// Of the prompt: sound.
    pub prompt_audio_tokens: u64,
    /// Of the completion: sound.
    pub completion_audio_tokens: u64,
    /// Of the completion: reasoning. Billed like the rest.
    pub reasoning_tokens: u64,
}

/// The upstream's object. Unknown fields are ignored; `null` is absent.
#[derive(Deserialize)]
struct Wire {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize, Default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    audio_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    /// What some compatible providers call `cache_write_tokens`.
    cache_creation_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
    audio_tokens: Option<u64>,
    accepted_prediction_tokens: Option<u64>,
    rejected_prediction_tokens: Option<u64>,
}

impl TryFrom<Wire> for Usage {
    type Error = &'static str;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let prompt = wire.prompt_tokens_details.unwrap_or_default();
        let completion = wire.completion_tokens_details.unwrap_or_default();
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let predicted =
            count(completion.accepted_prediction_tokens).max(count(completion.rejected_prediction_tokens));
        // A smaller total than the sum of both takes nothing off.
        let beside_the_prompt = count(wire.total_tokens).saturating_sub(wire.prompt_tokens);
        let usage = Self {
            prompt_tokens: wire.prompt_tokens,
            completion_tokens: wire.completion_tokens.max(beside_the_prompt),
            cached_tokens: count(prompt.cached_tokens),
            cache_write_tokens: count(prompt.cache_write_tokens.max(prompt.cache_creation_tokens)),
            prompt_audio_tokens: count(prompt.audio_tokens),
            completion_audio_tokens: count(completion.audio_tokens),
            reasoning_tokens: count(completion.reasoning_tokens),
        };
        let sane = count(wire.total_tokens) <= MAX_TOKENS && predicted <= usage.completion_tokens;
        let plausible = sane && usage.is_plausible();
        plausible
            .then_some(usage)
            .ok_or("not a usage that can be believed")
    }
}

impl Usage {
    /// Whether it is not empty, not absurd, and no detail exceeds its total.
    fn is_plausible(&self) -> bool {
        let totals = [self.prompt_tokens, self.completion_tokens];
        let details = [
            (
                self.cached_tokens.saturating_add(self.cache_write_tokens),
                self.prompt_tokens,
            ),
            (self.prompt_audio_tokens, self.prompt_tokens),
            (self.completion_audio_tokens, self.completion_tokens),
            (self.reasoning_tokens, self.completion_tokens),
        ];
        totals.iter().any(|tokens| *tokens > 0)
            && totals.iter().all(|tokens| *tokens <= MAX_TOKENS)
            && details.iter().all(|(part, total)| part <= total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(json: &str) -> Option<Usage> {
        serde_json::from_str(json).ok()
    }

    #[test]
    fn reads_what_openai_sends() {
        let usage = parse(
            r#"{"prompt_tokens": 2600, "completion_tokens": 300, "total_tokens": 2900, "cost": 1.5,
                "prompt_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400, "audio_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 200, "audio_tokens": 20,
                    "accepted_prediction_tokens": 3, "rejected_prediction_tokens": 4}}"#,
        );
        let expected = Usage {
            prompt_tokens: 2600,
            completion_tokens: 300,
            cached_tokens: 2000,
            cache_write_tokens: 400,
            prompt_audio_tokens: 10,
            completion_audio_tokens: 20,
            reasoning_tokens: 200,
        };
        assert_eq!(usage, Some(expected));
    }

    #[test]
    fn nulls_and_gaps_are_zero() {
        let plain = parse(r#"{"prompt_tokens": 9, "completion_tokens": 12}"#).unwrap();
        assert_eq!(
            (plain.prompt_tokens, plain.completion_tokens, plain.cached_tokens),
            (9, 12, 0)
        );
        for json in [
            r#"{"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": null, "prompt_tokens_details": null}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": null}}"#,
            r#"{"completion_tokens_details": {}, "completion_tokens": 12, "prompt_tokens": 9}"#,
        ] {
            assert_eq!(parse(json), Some(plain), "{json}");
        }
        for json in [
            r#"{"prompt_tokens": 0, "completion_tokens": 1}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 0}"#,
        ] {
            assert!(parse(json).is_some(), "{json}");
        }
    }

    /// Gemini counts reasoning and the prompts of tools in the total only, xAI reasoning in a detail and in the total.
    #[test]
    fn what_only_the_total_has_is_completion() {
        for (json, [prompt, completion, reasoning, audio]) in [
            (
                r#"{"prompt_tokens": 12, "completion_tokens": 35, "total_tokens": 15047}"#,
                [12, 15_035, 0, 0],
            ),
            (
                r#"{"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 20041,
                    "completion_tokens_details": {"reasoning_tokens": 20000}}"#,
                [32, 20_009, 20_000, 0],
            ),
            (
                r#"{"prompt_tokens": 32, "completion_tokens": 100, "total_tokens": 182,
                    "completion_tokens_details": {"reasoning_tokens": 50}}"#,
                [32, 150, 50, 0],
            ),
            (
                r#"{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 30,
                    "prompt_tokens_details": {"cached_tokens": 10},
                    "completion_tokens_details": {"audio_tokens": 15, "rejected_prediction_tokens": 6}}"#,
                [10, 20, 0, 15],
            ),
            (
                r#"{"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 3}"#,
                [0, 3, 0, 0],
            ),
            (
                r#"{"prompt_tokens": 0, "completion_tokens": 5, "total_tokens": 1000000000}"#,
                [0, 1_000_000_000, 0, 0],
            ),
            // A total below the sum, or below the prompt, takes nothing off.
            (
                r#"{"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 10}"#,
                [9, 5, 0, 0],
            ),
            (
                r#"{"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 0}"#,
                [9, 5, 0, 0],
            ),
        ] {
            let usage = parse(json).expect(json);
            assert_eq!(
                [
                    usage.prompt_tokens,
                    usage.completion_tokens,
                    usage.reasoning_tokens,
                    usage.completion_audio_tokens
                ],
                [prompt, completion, reasoning, audio],
                "{json}"
            );
        }
    }

    #[test]
    fn nonsense_is_no_usage() {
        for json in [
            "",
            "null",
            "{}",
            "[]",
            "[1, 2]",
            "7",
            r#"{"prompt_tokens": 9}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": null}"#,
            r#"{"prompt_tokens": 0, "completion_tokens": 0}"#,
            r#"{"prompt_tokens": -1, "completion_tokens": 5}"#,
            r#"{"prompt_tokens": 1.5, "completion_tokens": 5}"#,
            r#"{"prompt_tokens": "9", "completion_tokens": 5}"#,
            r#"{"prompt_tokens": 1000000001, "completion_tokens": 5}"#,
            r#"{"prompt_tokens": 5, "completion_tokens": 1000000001}"#,
            r#"{"prompt_tokens": 99999999999999999999, "completion_tokens": 5}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 1000000001}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": -14}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 18446744073709551615}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 1009,
                "prompt_tokens_details": {"cached_tokens": 10}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 19,
                "completion_tokens_details": {"reasoning_tokens": 11}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens": 1}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": -1}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"audio_tokens": 10}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 5}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 18446744073709551615, "cache_write_tokens": 1}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"audio_tokens": 6}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 6}}"#,
            r#"{"prompt_tokens": 9, "completion_tokens": 5,
                "completion_tokens_details": {"rejected_prediction_tokens": 6}}"#,
        ] {
            assert_eq!(parse(json), None, "{json}");
        }
    }

    /// Any JSON value, a few levels deep, with the names that matter among its keys.
    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<u64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            "[a-z]{0,3}".prop_map(Into::into),
        ];
        let key = prop::sample::select(vec![
            "prompt_tokens",
            "completion_tokens",
            "total_tokens",
            "prompt_tokens_details",
            "completion_tokens_details",
            "cached_tokens",
            "audio_tokens",
            "reasoning_tokens",
            "other",
        ]);
        leaf.prop_recursive(3, 32, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::hash_map(key.clone().prop_map(str::to_owned), inner, 0..8)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Every token of the total is charged, and none of what is reported without it becomes cheaper by it.
        #[test]
        fn a_total_only_adds(
            prompt in 0_u64..1_000_000, completion in 0_u64..1_000_000, total in 0_u64..3_000_000,
        ) {
            let counts = format!(r#""prompt_tokens": {prompt}, "completion_tokens": {completion}"#);
            let with = parse(&format!(r#"{{{counts}, "total_tokens": {total}}}"#));
            let Some(without) = parse(&format!("{{{counts}}}")) else {
                prop_assert_eq!(with.is_some(), total > 0);
                return Ok(());
            };
            let with = with.unwrap();
            prop_assert_eq!(with.prompt_tokens, without.prompt_tokens);
            prop_assert!(with.completion_tokens >= without.completion_tokens);
            prop_assert_eq!(with.prompt_tokens + with.completion_tokens, total.max(prompt + completion));
        }

        #[test]
        fn arbitrary_json_is_refused_or_plausible(value in json()) {
            if let Some(usage) = parse(&value.to_string()) {
                prop_assert!(usage.is_plausible());
            }
        }
    }
}
