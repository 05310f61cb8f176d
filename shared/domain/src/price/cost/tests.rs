//! Tests of the real cost against figures computed by hand.

use super::*;
use crate::price::CallShape;
use crate::price::tests::{builtin, of_models};
use proptest::prelude::*;

fn usage(json: &str) -> Usage {
    serde_json::from_str(json).unwrap()
}

fn call<'a>(model: &'a str, usage: &'a Usage) -> ServedCall<'a> {
    ServedCall {
        model,
        tier_asked: None,
        tier_reported: None,
        usage,
        web_search: false,
        long_cache: false,
    }
}

fn nanos(call: ServedCall<'_>) -> u64 {
    builtin().actual_cost(&call).unwrap().cost.get()
}

/// The record of a call says whether it paid for a search.
#[test]
fn a_search_is_part_of_the_cost() {
    let usage = usage(r#"{"prompt_tokens": 9, "completion_tokens": 12}"#);
    for (model, requested, web_search) in [
        ("gpt-4o", false, false),
        ("gpt-4o", true, true),
        ("gpt-4o-search-preview", false, true),
        ("gpt-99-search", false, true),
    ] {
        let call = ServedCall {
            web_search: requested,
            ..call(model, &usage)
        };
        assert_eq!(
            builtin().actual_cost(&call).unwrap().web_search,
            web_search,
            "{model}"
        );
    }
}

#[test]
fn text_in_and_out() {
    let usage = usage(r#"{"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}"#);
    // 9 × 2,500 + 12 × 10,000 nano-USD.
    assert_eq!(nanos(call("gpt-4o", &usage)), 142_500);
    assert_eq!(nanos(call("gpt-4o-2024-08-06", &usage)), 142_500);
    assert_eq!(
        nanos(call("gpt-99", &usage)),
        9 * 60_000 + 12 * 300_000,
        "the dearest, without a search that nobody asked for"
    );
}

#[test]
fn cached_written_and_reasoning_tokens() {
    let usage = usage(
        r#"{"prompt_tokens": 2600, "completion_tokens": 300,
            "prompt_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400},
            "completion_tokens_details": {"reasoning_tokens": 200}}"#,
    );
    // gpt-5.6-sol: 200 at 4, 2,000 at 0.40, 400 at 5, 300 at 20; the 300 include reasoning.
    assert_eq!(
        nanos(call("gpt-5.6-sol", &usage)),
        800_000 + 800_000 + 2_000_000 + 6_000_000
    );
    // gpt-4o does not bill writes: 600 at 2.50, 2,000 at 1.25, 300 at 10.
    assert_eq!(nanos(call("gpt-4o", &usage)), 1_500_000 + 2_500_000 + 3_000_000);
    // gpt-4 has no cache: 2,600 at 30, 300 at 60.
    assert_eq!(nanos(call("gpt-4", &usage)), 78_000_000 + 18_000_000);
}

/// gpt-6-astra: 12.50 for a token that is written for 30 minutes, 25 for one that is written for 12 hours.
#[test]
fn a_longer_life_in_the_cache_costs_more() {
    let with = |written: u64, split: [u64; 2]| Usage {
        prompt_tokens: 1_000,
        cache_write_tokens: written,
        cache_write_12h_tokens: split[0],
        cache_write_30m_tokens: split[1],
        ..usage(r#"{"prompt_tokens": 1000, "completion_tokens": 0}"#)
    };
    for (long_cache, written, split, long) in [
        (false, 400, [0, 0], 0),
        (false, 400, [400, 0], 400),
        (false, 400, [100, 300], 100),
        // Only the request's body has their lifetime.
        (true, 400, [0, 0], 400),
        (true, 400, [0, 400], 0),
        (true, 400, [100, 300], 100),
        (true, 400, [100, 200], 200),
    ] {
        let usage = with(written, split);
        let served = ServedCall {
            long_cache,
            ..call("gpt-6-astra", &usage)
        };
        let expected = (1_000 - written) * 10_000 + (written - long) * 12_500 + long * 25_000;
        assert_eq!(nanos(served), expected, "{long_cache} {written} {split:?}");
    }
    let usage = with(400, [400, 0]);
    let flex = ServedCall {
        tier_reported: Some("flex"),
        ..call("gpt-6-astra", &usage)
    };
    assert_eq!(nanos(flex), 600 * 5_000 + 400 * 12_500);
    assert_eq!(
        nanos(call("gpt-6-astra-law", &usage)),
        1_000 * 10_000,
        "no price for writing"
    );
}

#[test]
fn sound_has_its_own_prices() {
    let usage = usage(
        r#"{"prompt_tokens": 100, "completion_tokens": 50,
            "prompt_tokens_details": {"audio_tokens": 60, "cached_tokens": 0},
            "completion_tokens_details": {"audio_tokens": 40}}"#,
    );
    // gpt-audio: 40 at 2.50, 60 at 32, 10 at 10, 40 at 64.
    assert_eq!(
        nanos(call("gpt-audio", &usage)),
        100_000 + 1_920_000 + 100_000 + 2_560_000
    );
    // Cached tokens beyond the text are audio, which has no discount.
    let cached = Usage {
        cached_tokens: 100,
        ..usage
    };
    let flat = ServedCall {
        usage: &cached,
        ..call("gpt-audio", &usage)
    };
    assert_eq!(
        nanos(flat),
        100_000 + 1_920_000 + 100_000 + 2_560_000,
        "no cached price on this model at all"
    );
}

/// Cached and written tokens are text, as far as audio leaves room; all kinds together make up the prompt.
#[test]
fn each_token_of_the_prompt_is_charged_once_as_one_kind() {
    let table = of_models(
        "[models.m]\nrates.standard = { input = \"0.01\", cached_input = \"0.001\", cache_write = \"0.1\", \
         output = \"1\", audio_input = \"10\", audio_output = \"100\" }",
    );
    let nanos = |audio: u64, cached: u64, written: u64, spoken: u64| {
        let usage = Usage {
            prompt_tokens: 10_000,
            completion_tokens: 1_000,
            cached_tokens: cached,
            cache_write_tokens: written,
            cache_write_12h_tokens: 0,
            cache_write_30m_tokens: 0,
            prompt_audio_tokens: audio,
            completion_audio_tokens: spoken,
            reasoning_tokens: 0,
        };
        table.actual_cost(&call("m", &usage)).unwrap().cost.get()
    };
    let completion = 1_000 * 1_000;
    // Of 10,000 tokens: text at 10 nano-USD, cached at 1, written at 100, audio at 10,000.
    assert_eq!(nanos(0, 0, 0, 0), 10_000 * 10 + completion);
    assert_eq!(nanos(0, 3_000, 0, 0), 7_000 * 10 + 3_000 + completion);
    assert_eq!(nanos(0, 10_000, 0, 0), 10_000 + completion);
    assert_eq!(
        nanos(0, 3_000, 2_000, 0),
        5_000 * 10 + 3_000 + 2_000 * 100 + completion
    );
    assert_eq!(
        nanos(4_000, 3_000, 2_000, 0),
        1_000 * 10 + 3_000 + 2_000 * 100 + 4_000 * 10_000 + completion
    );
    // There are more cached and written tokens than text. Text goes first to the written tokens, the dearer kind, and
    // the remainder to the cached ones.
    assert_eq!(
        nanos(6_000, 3_000, 2_000, 0),
        2_000 + 2_000 * 100 + 6_000 * 10_000 + completion
    );
    assert_eq!(
        nanos(6_000, 1_000, 5_000, 0),
        4_000 * 100 + 6_000 * 10_000 + completion
    );
    assert_eq!(nanos(10_000, 5_000, 5_000, 0), 10_000 * 10_000 + completion);
    // The same for the completion.
    assert_eq!(nanos(0, 0, 0, 400), 10_000 * 10 + 600 * 1_000 + 400 * 100_000);
}

#[test]
fn the_tier_reported_wins() {
    let usage = usage(r#"{"prompt_tokens": 0, "completion_tokens": 1000}"#);
    for (tier_asked, tier_reported, cost) in [
        (None, None, 8_000_000),
        // The requested tier does not prove which one is billed: the dearer of it and of `auto_tier` counts.
        (Some("flex"), None, 8_000_000),
        (Some("auto"), None, 8_000_000),
        (Some("priority"), None, 14_000_000),
        (Some("scale"), None, 14_000_000),
        (Some("flex"), Some("flex"), 4_000_000),
        (Some("flex"), Some("default"), 8_000_000),
        (Some("auto"), Some("priority"), 14_000_000),
        (Some("priority"), Some("default"), 8_000_000),
        (Some("priority"), Some("fast"), 14_000_000),
        (None, Some("scale"), 14_000_000),
        (Some("flex"), Some("auto"), 8_000_000),
    ] {
        let call = ServedCall {
            tier_asked,
            tier_reported,
            ..call("o3", &usage)
        };
        assert_eq!(nanos(call), cost, "{tier_asked:?} {tier_reported:?}");
    }
}

/// `auto_tier` is the tier of a project's calls, even if it is cheaper than the standard one.
#[test]
fn without_a_report_the_auto_tier_is_the_least() {
    let text = crate::price::DEFAULT_PRICES.replace("auto_tier = \"default\"", "auto_tier = \"flex\"");
    let table = PriceTable::from_toml(&text).unwrap();
    let usage = usage(r#"{"prompt_tokens": 0, "completion_tokens": 1000}"#);
    for (tier_asked, cost) in [
        (None, 4_000_000),
        (Some("flex"), 4_000_000),
        (Some("default"), 8_000_000),
        (Some("priority"), 14_000_000),
    ] {
        let call = ServedCall {
            tier_asked,
            ..call("o3", &usage)
        };
        assert_eq!(
            table.actual_cost(&call).unwrap().cost.get(),
            cost,
            "{tier_asked:?}"
        );
    }
}

#[test]
fn long_context_goes_by_the_reported_prompt() {
    let at = |prompt_tokens| {
        let usage = Usage {
            prompt_tokens,
            ..usage(r#"{"prompt_tokens": 1, "completion_tokens": 1000}"#)
        };
        nanos(call("gpt-5.5", &usage))
    };
    assert_eq!(at(272_000), 272_000 * 5_000 + 1_000 * 30_000);
    assert_eq!(at(272_001), 272_001 * 10_000 + 1_000 * 45_000);
}

#[test]
fn one_search_is_billed() {
    let usage = usage(r#"{"prompt_tokens": 0, "completion_tokens": 100}"#);
    let asked = ServedCall {
        web_search: true,
        ..call("gpt-5", &usage)
    };
    assert_eq!(nanos(asked), 11_000_000);
    assert_eq!(nanos(call("gpt-5", &usage)), 1_000_000);
    assert_eq!(nanos(call("gpt-4o-search-preview", &usage)), 26_000_000);
    assert_eq!(nanos(call("gpt-5-search-api-2025-10-14", &usage)), 11_000_000);
}

/// A model without a price pays the dearest fee only if the call requests a search or the model's name contains the
/// mark.
#[test]
fn an_unknown_model_searches_by_its_name() {
    let usage = usage(r#"{"prompt_tokens": 0, "completion_tokens": 100}"#);
    for (model, fee) in [
        ("gpt-99", 0),
        ("some-new-model", 0),
        ("gpt-9-search-preview", 25_000_000),
        ("gpt-9-Search-API", 25_000_000),
        ("o9-deep-research", 25_000_000),
        ("groq/llama", 0),
    ] {
        assert_eq!(nanos(call(model, &usage)), 100 * 300_000 + fee, "{model}");
        let asked = ServedCall {
            web_search: true,
            ..call(model, &usage)
        };
        assert_eq!(nanos(asked), 100 * 300_000 + 25_000_000, "{model}");
        let shape = CallShape {
            model,
            completion_tokens: 100,
            ..CallShape::EMPTY
        };
        let estimates = [false, true].map(|web_search| {
            let shape = CallShape { web_search, ..shape };
            builtin().estimate(&shape).unwrap().get()
        });
        assert_eq!(
            estimates,
            [100 * 300_000 + fee, 100 * 300_000 + 25_000_000],
            "{model}"
        );
    }
}

#[test]
fn rounds_up_once() {
    let table = PriceTable::from_toml(
        "auto_tier = \"default\"\n[allowances]\nimage_tokens = 1\naudio_tokens = 1\nfile_tokens = 1\n\
         [models.m]\nrates.standard = { input = \"0.0004\", cached_input = \"0.0001\", output = \"0.0004\" }",
    );
    let table = table.unwrap();
    let usage = usage(
        r#"{"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2}}"#,
    );
    // 400 + 2 × 100 + 400 pico-USD are exactly one nano-USD.
    assert_eq!(table.actual_cost(&call("m", &usage)).unwrap().cost.get(), 1);
    let more = Usage {
        cached_tokens: 1,
        ..usage
    };
    assert_eq!(table.actual_cost(&call("m", &more)).unwrap().cost.get(), 2);
}

/// Returns a call for tier `asked` whose usage equals the tokens that were held, and both amounts.
fn held_and_charged(
    (model, service_tier): (&str, Option<&str>),
    [prompt, completion]: [u64; 2],
    tier_reported: Option<&str>,
) -> [u64; 2] {
    let shape = CallShape {
        model,
        service_tier,
        tier_is_reported: tier_reported.is_some(),
        token_ids: prompt,
        completion_tokens: completion,
        ..CallShape::EMPTY
    };
    let usage = usage(&format!(
        r#"{{"prompt_tokens": {prompt}, "completion_tokens": {completion}}}"#
    ));
    let served = ServedCall {
        tier_asked: service_tier,
        tier_reported,
        ..call(model, &usage)
    };
    [
        builtin().estimate(&shape).unwrap().get(),
        builtin().actual_cost(&served).unwrap().cost.get(),
    ]
}

proptest! {
    /// The held amount equals the cost of the same tokens if the upstream reports the requested tier, and if it reports
    /// none and the estimate knows that. Only without a report can a tier not make the call cheaper than no tier.
    #[test]
    fn no_more_is_charged_than_held(
        model in prop::sample::select(builtin().models().collect::<Vec<_>>()),
        asked in prop::sample::select(vec!["auto", "default", "flex", "fast", "priority", "ultrafast", "?"]),
        prompt in prop_oneof![1_u64..10_000, 271_998_u64..272_003, 1_u64..1_000_000],
        completion in 0_u64..200_000,
    ) {
        let tokens = [prompt, completion];
        let [held, charged] = held_and_charged((model, Some(asked)), tokens, Some(asked));
        prop_assert_eq!(held, charged, "reported");
        let [held, charged] = held_and_charged((model, Some(asked)), tokens, None);
        prop_assert_eq!(held, charged, "not reported");
        let [_, unasked] = held_and_charged((model, None), tokens, None);
        prop_assert!(charged >= unasked);
    }

    #[test]
    fn no_usage_panics_and_discounts_only_lower(
        prompt_tokens in 0_u64..1_000_000_000,
        completion_tokens in 0_u64..1_000_000_000,
        [cached_tokens, cache_write_tokens, prompt_audio_tokens, completion_audio_tokens] in
            prop::array::uniform4(any::<u64>()),
    ) {
        let plain = Usage {
            prompt_tokens, completion_tokens, cached_tokens: 0, cache_write_tokens: 0, cache_write_12h_tokens: 0,
            cache_write_30m_tokens: 0, prompt_audio_tokens: 0, completion_audio_tokens: 0, reasoning_tokens: 0,
        };
        let odd = Usage { cached_tokens, cache_write_tokens, prompt_audio_tokens, completion_audio_tokens, ..plain };
        let _ = builtin().actual_cost(&call("gpt-audio", &odd));
        let cached = Usage { cached_tokens, ..plain };
        prop_assert!(
            nanos(call("gpt-4o", &cached)) <= nanos(call("gpt-4o", &plain))
        );
    }
}
