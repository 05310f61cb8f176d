//! Tests of plausible usages, and of the resulting counts.

use super::*;
use crate::money::Nanos;
use crate::price::tests::of_models;
use crate::price::{PriceTable, ServedCall};
use proptest::prelude::*;
use std::sync::LazyLock;

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
        cache_write_12h_tokens: 0,
        cache_write_30m_tokens: 0,
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
fn tokens_only_in_the_total_count_as_completion() {
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
        // A total below the sum, or below the prompt, does not reduce anything.
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

/// Reasoning in addition to the completion (OpenRouter over Friendli), cached tokens in addition to the prompt (Grok 4
/// there), and omitted counts (Gemini's compatible endpoint).
#[test]
fn contradictory_details_are_added_to_their_totals() {
    let prompt = |details: &str| {
        format!(r#"{{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {{{details}}}}}"#)
    };
    let completion = |total: &str, details: &str| {
        format!(
            r#"{{"prompt_tokens": 9, "completion_tokens": 5{total}, "completion_tokens_details": {{{details}}}}}"#
        )
    };
    for (json, counts) in [
        (completion("", r#""reasoning_tokens": 6"#), [9, 11]),
        (completion("", r#""reasoning_tokens": 5"#), [9, 5]),
        (
            completion(r#", "total_tokens": 20"#, r#""reasoning_tokens": 6"#),
            [9, 11],
        ),
        (
            completion(r#", "total_tokens": 19"#, r#""reasoning_tokens": 11"#),
            [9, 16],
        ),
        (
            completion(r#", "total_tokens": 40"#, r#""reasoning_tokens": 11"#),
            [9, 31],
        ),
        (completion("", r#""audio_tokens": 6"#), [9, 11]),
        (completion("", r#""rejected_prediction_tokens": 6"#), [9, 11]),
        (
            completion("", r#""reasoning_tokens": 7, "audio_tokens": 6"#),
            [9, 18],
        ),
        (
            completion("", r#""reasoning_tokens": 999999995"#),
            [9, 1_000_000_000],
        ),
        (prompt(r#""cached_tokens": 10"#), [19, 5]),
        (prompt(r#""cached_tokens": 9"#), [9, 5]),
        (prompt(r#""cached_tokens": 5, "cache_write_tokens": 5"#), [19, 5]),
        (prompt(r#""cached_tokens": 5, "cache_write_tokens": 4"#), [9, 5]),
        (prompt(r#""audio_tokens": 10"#), [19, 5]),
        (prompt(r#""cached_tokens": 10, "audio_tokens": 3"#), [19, 5]),
        (prompt(r#""cached_tokens": 10, "audio_tokens": 11"#), [30, 5]),
        (
            r#"{"prompt_tokens": 13, "total_tokens": 5012}"#.to_owned(),
            [13, 4_999],
        ),
        (
            r#"{"completion_tokens": 4999, "total_tokens": 5012}"#.to_owned(),
            [13, 4_999],
        ),
        (
            r#"{"prompt_tokens": 9, "completion_tokens": null, "total_tokens": 3}"#.to_owned(),
            [9, 0],
        ),
        (r#"{"total_tokens": 12}"#.to_owned(), [0, 12]),
        (
            r#"{"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 4}}"#
                .to_owned(),
            [4, 0],
        ),
    ] {
        let usage = parse(&json).expect(&json);
        assert_eq!([usage.prompt_tokens, usage.completion_tokens], counts, "{json}");
    }
}

#[test]
fn written_tokens_have_a_lifetime() {
    for (details, [prompt, written, long, short]) in [
        (r#""cache_write_tokens": 7"#, [9, 7, 0, 0]),
        (
            r#""cache_write_tokens": 7, "cache_write_tokens_details": null"#,
            [9, 7, 0, 0],
        ),
        (
            r#""cache_write_tokens": 7, "cache_write_tokens_details": {"ttl_12h_tokens": 5, "ttl_30m_tokens": 2}"#,
            [9, 7, 5, 2],
        ),
        (
            r#""cache_write_tokens": 7, "cache_write_tokens_details": {"ttl_12h_tokens": 5, "ttl_1w_tokens": 2}"#,
            [9, 7, 5, 0],
        ),
        (
            r#""cache_creation_tokens": 7, "cache_creation_token_details": {"ephemeral_1h_input_tokens": 5, "ephemeral_5m_input_tokens": 2}"#,
            [9, 7, 5, 2],
        ),
        // More than were written, and more than the prompt.
        (
            r#""cache_write_tokens_details": {"ttl_12h_tokens": 5}"#,
            [9, 5, 5, 0],
        ),
        (
            r#""cache_write_tokens": 4, "cache_write_tokens_details": {"ttl_12h_tokens": 5}"#,
            [9, 9, 5, 0],
        ),
        (
            r#""cache_write_tokens_details": {"ttl_12h_tokens": 5, "ttl_30m_tokens": 6}"#,
            [20, 11, 5, 6],
        ),
    ] {
        let json = format!(
            r#"{{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {{{details}}}}}"#
        );
        let usage = parse(&json).expect(&json);
        assert_eq!(
            [
                usage.prompt_tokens,
                usage.cache_write_tokens,
                usage.cache_write_12h_tokens,
                usage.cache_write_30m_tokens
            ],
            [prompt, written, long, short],
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
        r#"{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens": 1}"#,
        r#"{"total_tokens": 0}"#,
        r#"{"total_tokens": 1000000001}"#,
        r#"{"completion_tokens": 9}"#,
        r#"{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": -1}}"#,
        r#"{"prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 1.5}}"#,
        // Implausible as reported, or once the detail is added.
        r#"{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 999999992}}"#,
        r#"{"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"audio_tokens": 999999992}}"#,
        r#"{"prompt_tokens": 9, "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 18446744073709551615, "cache_write_tokens": 1}}"#,
        r#"{"prompt_tokens": 9, "completion_tokens": 5,
            "completion_tokens_details": {"reasoning_tokens": 999999996}}"#,
        r#"{"prompt_tokens": 9, "completion_tokens": 5,
            "completion_tokens_details": {"reasoning_tokens": 18446744073709551615, "audio_tokens": 6}}"#,
    ] {
        assert_eq!(parse(json), None, "{json}");
    }
}

/// Generates any JSON value, a few levels deep, with the relevant names among its keys.
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

/// Returns a `usage` with these counts of prompt and completion, with the details: cached, written and audio tokens of
/// the prompt; reasoning, audio and rejected tokens of the completion; and the total.
fn json_of(prompt: u64, completion: u64, details: [Option<u64>; 7]) -> String {
    let [cached, written, heard, reasoning, spoken, rejected, total] = details;
    serde_json::json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        "prompt_tokens_details": {
            "cached_tokens": cached, "cache_write_tokens": written, "audio_tokens": heard,
        },
        "completion_tokens_details": {
            "reasoning_tokens": reasoning, "audio_tokens": spoken, "rejected_prediction_tokens": rejected,
        },
    })
    .to_string()
}

/// Returns the cost at prices where each special token costs more than a plain one, and a cached one the same.
fn cost(prompt: u64, completion: u64, details: [Option<u64>; 7]) -> Option<Nanos> {
    const MODEL: &str = "[models.m]\nrates.standard = { input = \"2\", cache_write = \"2.50\", output = \"10\", \
        audio_input = \"20\", audio_output = \"40\" }";
    static TABLE: LazyLock<PriceTable> = LazyLock::new(|| of_models(MODEL));
    let usage = parse(&json_of(prompt, completion, details))?;
    let call = ServedCall {
        model: "m",
        tier_asked: None,
        tier_reported: None,
        usage: &usage,
        web_search: false,
        long_cache: false,
    };
    Some(TABLE.actual_cost(&call)?.cost)
}

proptest! {
    /// Every token of the total is charged, and adding a total never lowers the charge.
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

    /// The charge is at least that of any interpretation of the same counts, and adding a detail or a total never
    /// lowers it. The prices exclude the only discount, that of cached tokens which are part of the prompt.
    #[test]
    fn details_and_totals_only_add(
        [prompt, completion] in prop::array::uniform2(0_u64..3_000),
        [cached, written, heard] in prop::array::uniform3(prop::option::of(0_u64..5_000)),
        [reasoning, spoken, rejected, total] in prop::array::uniform4(prop::option::of(0_u64..9_000)),
        left_out in 0_usize..7,
    ) {
        let mut details = [cached, written, heard, reasoning, spoken, rejected, total];
        let whole = cost(prompt, completion, details);
        let charged = parse(&json_of(prompt, completion, details));
        details[left_out] = None;
        prop_assert!(cost(prompt, completion, details) <= whole);
        let Some(usage) = charged else {
            prop_assert_eq!(whole, None);
            return Ok(());
        };
        let [.., reasoning, spoken, rejected, total] = details.map(Option::unwrap_or_default);
        let [cached, written, heard, ..] = details.map(Option::unwrap_or_default);
        let parts = [completion, reasoning, spoken, rejected, total.saturating_sub(prompt)];
        prop_assert!(parts.iter().all(|part| *part <= usage.completion_tokens));
        prop_assert!([prompt, cached + written, heard].iter().all(|part| *part <= usage.prompt_tokens));
        if reasoning > completion {
            prop_assert!(usage.completion_tokens >= completion + reasoning);
        }
        if cached + written > prompt {
            prop_assert!(usage.prompt_tokens >= prompt + cached + written);
        }
        prop_assert!(usage.prompt_tokens + usage.completion_tokens >= total);
    }

    #[test]
    fn arbitrary_json_is_refused_or_plausible(value in json()) {
        if let Some(usage) = parse(&value.to_string()) {
            prop_assert!(usage.is_plausible());
        }
    }
}
