//! Tests of the whole table: the figures of the file, the look-up of names, and the dearest prices.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Returns the compiled-in table, parsed once for all tests.
pub(super) fn builtin() -> &'static PriceTable {
    static TABLE: LazyLock<PriceTable> = LazyLock::new(|| PriceTable::builtin().unwrap());
    &TABLE
}

/// Returns a table of these models, with all settings of the file that precede its models.
pub(super) fn of_models(models: &str) -> PriceTable {
    let settings = DEFAULT_PRICES.split("[models.").next().unwrap();
    PriceTable::from_toml(&[settings, models].concat()).unwrap()
}

/// Input and output in pico-USD for a token of the standard tier.
fn figures(model: &str) -> (u64, u64) {
    let rates = builtin().price_of(model).rates(None, &builtin().tier_names, 0);
    (rates.input_picos, rates.output_picos)
}

/// No model shrinks an image below these sizes, whatever its `detail`.
#[test]
fn an_image_counts_as_much_as_the_model_can_bill() {
    for (model, tokens) in [
        ("gpt-6-luna", 36_000),
        ("gpt-6.1-sol", 36_000),
        ("gpt-5.6-terra", 36_000),
        ("chat-latest", 36_000),
        ("gpt-5.5", 12_000),
        ("gpt-5.4-pro", 12_000),
        ("gpt-4o-mini", 48_169),
    ] {
        assert_eq!(builtin().price_of(model).image_tokens, tokens, "{model}");
    }
}

#[test]
fn the_file_has_the_published_figures() {
    for (model, input, cached, output) in [
        ("gpt-4o", 2_500_000, 1_250_000, 10_000_000),
        ("gpt-4o-2024-05-13", 5_000_000, 5_000_000, 15_000_000),
        ("gpt-4o-mini", 150_000, 75_000, 600_000),
        ("gpt-4.1-nano", 100_000, 25_000, 400_000),
        ("gpt-5", 1_250_000, 125_000, 10_000_000),
        ("gpt-5-nano", 50_000, 5_000, 400_000),
        ("gpt-5.4", 2_500_000, 250_000, 15_000_000),
        ("gpt-6-luna", 100_000, 10_000, 500_000),
        ("gpt-6-astra", 10_000_000, 1_000_000, 50_000_000),
        ("gpt-6.1-sol", 2_000_000, 100_000, 10_000_000),
        ("o1", 15_000_000, 7_500_000, 60_000_000),
        ("o3", 2_000_000, 500_000, 8_000_000),
        ("o4-mini", 1_100_000, 275_000, 4_400_000),
        ("gpt-4", 30_000_000, 30_000_000, 60_000_000),
        ("gpt-3.5-turbo", 500_000, 500_000, 1_500_000),
        ("ft:gpt-4o-mini-2024-07-18", 300_000, 150_000, 1_200_000),
        ("gpt-5.3-codex", 1_750_000, 175_000, 14_000_000),
        ("gpt-5.5-pro", 30_000_000, 30_000_000, 180_000_000),
        ("o3-pro-2025-06-10", 20_000_000, 20_000_000, 80_000_000),
        ("text-embedding-3-small", 20_000, 20_000, 20_000),
        ("text-embedding-3-large", 130_000, 130_000, 130_000),
        ("text-embedding-ada-002", 100_000, 100_000, 100_000),
    ] {
        let rates = builtin()
            .known(model)
            .unwrap()
            .rates(None, &builtin().tier_names, 0);
        assert_eq!(
            (rates.input_picos, rates.output_picos),
            (input, output),
            "{model}"
        );
        assert_eq!(rates.cached_input_picos, cached, "{model}");
    }
}

#[test]
fn the_file_has_tiers_long_context_audio_and_fees() {
    let rates = |model: &str, tier: Option<&str>, prompt_tokens| {
        *builtin()
            .price_of(model)
            .rates(tier, &builtin().tier_names, prompt_tokens)
    };
    assert_eq!(rates("gpt-5", Some("flex"), 1).output_picos, 5_000_000);
    assert_eq!(rates("o4-mini", Some("flex"), 1).cached_input_picos, 138_000);
    assert_eq!(rates("gpt-4o", Some("priority"), 1).input_picos, 4_250_000);
    assert_eq!(
        rates("gpt-4o", Some("fast"), 1).input_picos,
        4_250_000,
        "the newer word for it"
    );
    assert_eq!(
        rates("gpt-6-astra", Some("ultrafast"), 272_001).output_picos,
        450_000_000
    );
    assert_eq!(rates("gpt-5.5", None, 272_000).input_picos, 5_000_000);
    assert_eq!(rates("gpt-5.5", None, 272_001).input_picos, 10_000_000);
    assert_eq!(rates("gpt-5.6-sol", None, 1).cache_write_picos, 5_000_000);
    for (tier, prompt_tokens, picos) in [
        (None, 1, 10_000_000),
        (Some("flex"), 1, 5_000_000),
        (None, 272_001, 20_000_000),
        (Some("fast"), 272_001, 40_000_000),
    ] {
        assert_eq!(
            rates("gpt-5.6-sol", tier, prompt_tokens).cache_write_12h_picos,
            picos
        );
    }
    let audio = rates("gpt-audio", None, 1);
    assert_eq!(
        (audio.audio_input_picos, audio.audio_output_picos),
        (32_000_000, 64_000_000)
    );
    assert_eq!(
        builtin().price_of("gpt-4o-search-preview").web_search_picos,
        25_000_000_000
    );
    assert_eq!(builtin().price_of("gpt-5").web_search_picos, 10_000_000_000);
    assert_eq!(
        builtin().price_of("gpt-4o").web_search_picos,
        25_000_000_000,
        "no fee of its own: the dearest"
    );
    let searching: Vec<_> = builtin()
        .models()
        .filter(|m| builtin().price_of(m).always_searches)
        .collect();
    assert_eq!(
        searching.len(),
        6,
        "two GPT-4o models and one GPT-5 model, each with its snapshot: {searching:?}"
    );
}

#[test]
fn a_tier_without_a_price_takes_the_dearest_of_its_model() {
    let rates = |model: &str, tier| {
        *builtin()
            .price_of(model)
            .rates(Some(tier), &builtin().tier_names, 1)
    };
    for tier in ["scale", "batch", "", "FLEX", "flex "] {
        assert_eq!(rates("gpt-5", tier), rates("gpt-5", "priority"), "{tier}");
    }
    assert_eq!(
        rates("gpt-4o", "flex"),
        rates("gpt-4o", "priority"),
        "published for other models only"
    );
    assert_eq!(
        rates("gpt-4-turbo", "flex"),
        rates("gpt-4-turbo", "default"),
        "it has one tier"
    );
    assert_eq!(rates("gpt-5", "auto"), rates("gpt-5", "default"));
}

#[test]
fn names_are_looked_up() {
    for (model, entry) in [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-2031-01-31", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-0314", "gpt-4"),
        ("gpt-4-turbo-preview", "gpt-4-1106-preview"),
        ("gpt-5.6", "gpt-5.6-sol"),
        ("gpt-4o-audio-preview", "gpt-4o-audio-preview-2025-06-03"),
        ("ft:gpt-4o-2024-08-06", "ft:gpt-4o-2024-08-06"),
        ("ft:gpt-4o-2024-08-06:acme:tickets:a1B2", "ft:gpt-4o-2024-08-06"),
        (
            "ft:gpt-4o-2024-08-06:acme::a1B2:ckpt-step-90",
            "ft:gpt-4o-2024-08-06",
        ),
        ("ft:gpt-4o:acme::a1B2", "ft:gpt-4o-2024-08-06"),
        ("ft:gpt-4o-2030-01-01:acme::a1B2", "ft:gpt-4o-2024-08-06"),
        ("ft:gpt-3.5-turbo-0125:acme::a1B2", "ft:gpt-3.5-turbo"),
        ("ft:gpt-5-2025-08-07:acme::a1B2", "gpt-5"),
        ("ft:gpt-5", "gpt-5"),
    ] {
        assert_eq!(
            builtin().known(model).map(ModelPrice::name),
            Some(entry),
            "{model}"
        );
    }
}

#[test]
fn unknown_names_take_the_dearest() {
    let long = "x".repeat(257);
    for model in [
        "",
        "gpt",
        "gpt-99",
        "GPT-4o",
        " gpt-4o",
        "openai/gpt-4o",
        "o1-pro",
        "text-embedding-3",
        "ft:",
        "ft::",
        "ft:gpt-99:acme::a1B2",
        "ft:ft:gpt-4o",
        "gpt-4o-",
        "gpt-4o-2024-08",
        &long,
    ] {
        assert!(
            builtin().known(model).is_none() && builtin().entry(model).is_none(),
            "{model}"
        );
        assert_eq!(builtin().price_of(model).name(), "", "{model}");
    }
    assert_eq!(
        figures("gpt-99"),
        (60_000_000, 300_000_000),
        "GPT-6 Astra, ultrafast"
    );
    let rates = builtin()
        .price_of("gpt-99")
        .rates(Some("flex"), &builtin().tier_names, 272_001);
    assert_eq!(
        (rates.input_picos, rates.output_picos),
        (120_000_000, 450_000_000)
    );
    assert_eq!(
        (rates.audio_input_picos, rates.audio_output_picos),
        (120_000_000, 450_000_000)
    );
}

#[test]
fn models_are_listed_once_and_in_order() {
    let names: Vec<_> = builtin().models().collect();
    assert!(names.is_sorted(), "alphabetical");
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    assert!(names.len() >= 98, "every chat model of the list");
    assert!(names.contains(&"gpt-4o") && names.contains(&"gpt-4o-2024-08-06"));
    for name in names {
        assert!(
            builtin()
                .entry(name)
                .is_some_and(|entry| entry.rates.contains_key("standard")),
            "{name}"
        );
    }
}

proptest! {
    #[test]
    fn the_unknown_model_is_not_cheaper_than_any(
        model in prop::sample::select(builtin().models().collect::<Vec<_>>()),
        service_tier in prop::sample::select(
            vec![None, Some("auto"), Some("default"), Some("flex"), Some("fast"), Some("ultrafast"), Some("?")],
        ),
        prompt_bytes in prop_oneof![0_u64..10_000, 1_087_900_u64..1_088_100, 0_u64..4_000_000],
        [image_parts, audio_parts, file_parts, reasoning_items] in prop::array::uniform4(0_u64..3),
        [framed, content_parts, predicted_bytes] in prop::array::uniform3(0_u64..3_000),
        completion_tokens in 1_u64..200_000,
        [audio_output, web_search, tier_is_reported, long_cache] in prop::array::uniform4(any::<bool>()),
    ) {
        let known = CallShape {
            model, service_tier, tier_is_reported, prompt_bytes, token_ids: prompt_bytes / 3, image_parts, audio_parts, file_parts,
            reasoning_items, completion_tokens, unlimited: false, n: 1,
            audio_output, web_search, long_cache, framed, content_parts, predicted_parts: content_parts / 2,
            predicted_bytes: predicted_bytes.min(prompt_bytes),
        };
        let always_searches = builtin().price_of(model).always_searches;
        let name = if always_searches { "gpt-99-search" } else { "gpt-99" };
        let unknown = CallShape { model: name, service_tier: None, ..known };
        prop_assert!(builtin().estimate(&known) <= builtin().estimate(&unknown));
    }
}
