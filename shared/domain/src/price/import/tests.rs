//! Tests of the import: exact figures in any notation, and a reason for every skipped entry.

use super::*;
use crate::price::estimate::tests::NOTHING;
use crate::price::tests::{builtin, of_models};
use crate::price::{CallShape, PriceTable};

const FIXTURE: &str = include_str!("../../../../../tests/fixtures/litellm-prices.json");

fn imported() -> Imported {
    import_litellm(FIXTURE, OPENAI).unwrap()
}

/// Models of other providers have the provider's name as a prefix, so that prices of different providers stay separate.
#[test]
fn models_of_another_provider_are_named_with_it() {
    const FILE: &str = r#"{
        "azure/gpt-4o": {"litellm_provider": "azure", "mode": "chat", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.1e-05},
        "azure/eu/gpt-4o": {"litellm_provider": "azure", "mode": "chat", "input_cost_per_token": 4e-06, "output_cost_per_token": 1.2e-05},
        "claude-9": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05},
        "gpt-4o": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2e-06, "output_cost_per_token": 1e-05},
        "nobody": {"mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06}
    }"#;
    let names = |provider| -> Vec<String> {
        let overlay = import_litellm(FILE, provider).unwrap().overlay;
        overlay.models().map(|(name, _)| name.to_owned()).collect()
    };
    assert_eq!(names("azure"), ["azure/eu/gpt-4o", "azure/gpt-4o"]);
    assert_eq!(names("anthropic"), ["anthropic/claude-9"]);
    assert_eq!(names(OPENAI), ["gpt-4o", "nobody"]);
    let overlay = import_litellm(FILE, "azure").unwrap().overlay;
    let table = PriceTable::merge(builtin(), &overlay).unwrap();
    let name = |model| table.known(model).map(|price| price.name().to_owned());
    assert_eq!(name("azure/gpt-4o-2024-08-06").as_deref(), Some("azure/gpt-4o"));
    assert_eq!(
        name("gpt-4o-2024-08-06").as_deref(),
        builtin().known("gpt-4o-2024-08-06").map(|price| price.name())
    );
    assert_eq!(name("azure/gpt-4.1"), None, "not the price of another provider");
    assert_eq!(table.price_of("azure/gpt-4.1").name(), "", "but the dearest");
}

/// The image allowance belongs to the model, whichever provider serves it. It is unknown for models outside the file.
#[test]
fn an_image_at_another_provider_is_held_as_that_of_the_same_model() {
    let names = [
        "azure/gpt-4o-mini",
        "azure/gpt-4o-mini-2024-07-18",
        "azure/eu/gpt-4o-mini",
        "azure/gpt-4o",
        "azure/novel",
    ];
    let entry = r#"{"litellm_provider": "azure", "mode": "chat", "input_cost_per_token": 1e-6,
        "output_cost_per_token": 1e-6}"#;
    let entries = names.map(|name| format!("\"{name}\": {entry}"));
    let overlay = import_litellm(&format!("{{{}}}", entries.join(",")), "azure")
        .unwrap()
        .overlay;
    let table = PriceTable::merge(builtin(), &overlay).unwrap();
    let held = |table: &PriceTable, model| {
        let image = CallShape {
            image_parts: 1,
            ..shape(model)
        };
        // One micro-USD a token.
        table.estimate(&image).unwrap().get() / 1_000
    };
    let mini = builtin().price_of("gpt-4o-mini").image_tokens;
    let dearest = builtin().price_of("no such model").image_tokens;
    assert!(mini > 40_000 && dearest >= mini);
    assert_eq!(
        names.map(|name| held(&table, name)),
        [mini, mini, mini, 2_500, dearest]
    );
    assert_eq!(held(&table, "azure/gpt-4o-mini-2030-01-31"), mini);
    assert_eq!(
        table.entry("azure/gpt-4o-mini").unwrap().image_tokens,
        Some(mini),
        "as `prices show` says"
    );
    // A figure of the operator takes precedence, and another operator's file applies to its own entries.
    let own = of_models(
        "[models.seer]\nimage_tokens = 7\ncompletion_tokens = 9_000\nrates.standard = { input = \"1\", output = \"1\" }\n\
         [models.\"x/seer\"]\nrates.standard = { input = \"1\", output = \"1\" }\n\
         [models.\"y/x/seer\"]\nimage_tokens = 8\nrates.standard = { input = \"1\", output = \"1\" }\n\
         [models.\"azure/novel\"]\nimage_tokens = 5\nrates.standard = { input = \"1\", output = \"1\" }\n\
         [models.\"x/blind\"]\nrates.standard = { input = \"1\", output = \"1\" }\n",
    );
    assert_eq!(
        ["x/seer", "y/x/seer", "x/blind"].map(|name| held(&own, name)),
        [7, 8, 2_500]
    );
    let unlimited = CallShape {
        completion_tokens: 1_024,
        unlimited: true,
        ..shape("x/seer")
    };
    assert_eq!(own.estimate(&unlimited).unwrap().get(), 9_000_000);
    let merged = PriceTable::merge(&own, &overlay).unwrap();
    assert_eq!(held(&merged, "azure/novel"), 5);
}

fn shape(model: &str) -> CallShape<'_> {
    CallShape { model, ..NOTHING }
}

#[test]
fn takes_the_models_that_the_edge_serves_only() {
    let imported = imported();
    let names: Vec<_> = imported.overlay.models().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "gpt-4o",
            "gpt-4o-mini-2024-07-18",
            "gpt-9-codex",
            "gpt-9-mini",
            "gpt-9-nova",
            "gpt-9-pro",
            "gpt-9-search-preview",
            "text-embedding-9",
            "text-embedding-9-tiered"
        ],
        "the provider's prefix is no part of a name"
    );
    let skipped: Vec<_> = imported
        .skipped
        .iter()
        .map(|s| (s.model.as_str(), s.reason.as_str()))
        .collect();
    assert_eq!(
        skipped,
        [
            ("azure/gpt-9", "the provider is `azure`"),
            ("gpt 9", "the name cannot name a model"),
            (
                "gpt-9-batch",
                "it is not served by /v1/chat/completions or /v1/responses"
            ),
            ("gpt-9-free", "`input_cost_per_token` is zero"),
            ("gpt-9-image", "the mode is `image_generation`"),
            ("gpt-9-list", "it is no JSON object"),
            ("gpt-9-minus", "`input_cost_per_token` is negative"),
            ("gpt-9-noise", "`input_cost_per_token` is finer than a pico-USD"),
            (
                "gpt-9-nova",
                "service tier `hyper`: `output_cost_per_token` is missing"
            ),
            ("gpt-9-steps", "it has more than one long-context threshold"),
            ("gpt-9-words", "`input_cost_per_token` is no decimal number"),
            ("openai/container", "`input_cost_per_token` is missing"),
            ("sample_spec", "the provider is `one of the providers`"),
            ("text-embedding-9-batch", "it is not served by /v1/embeddings"),
            (
                "text-embedding-9-tiered",
                "service tier `flex`: `input_cost_per_token` is missing"
            ),
        ]
    );
}

#[test]
fn figures_survive_import_store_and_merge_exactly() {
    let text = imported().overlay.to_store_text().unwrap();
    let overlay = PriceOverlay::from_store_text(&text).unwrap();
    assert_eq!(overlay, imported().overlay);
    assert_eq!(overlay.to_store_text().unwrap(), text);

    let table = PriceTable::merge(builtin(), &overlay).unwrap();
    let names = &table.tier_names;
    let nova = table.price_of("gpt-9-nova");
    let short = nova.rates(None, names, 272_000);
    assert_eq!((short.input_picos, short.output_picos), (12_500_000, 75_000_000));
    assert_eq!(
        (short.cached_input_picos, short.cache_write_picos),
        (1_250_000, 15_625_000)
    );
    assert_eq!(short.cache_write_12h_picos, 25_000_000);
    let long = nova.rates(None, names, 272_001);
    assert_eq!(
        long.cache_write_12h_picos, 31_250_000,
        "not listed: as dear as any write there"
    );
    assert_eq!((long.input_picos, long.output_picos), (25_000_000, 112_500_000));
    assert_eq!(
        (long.cached_input_picos, long.cache_write_picos),
        (2_500_000, 31_250_000)
    );
    let flex = nova.rates(Some("flex"), names, 1);
    assert_eq!((flex.input_picos, flex.output_picos), (6_250_000, 37_500_000));
    assert_eq!(
        (flex.cached_input_picos, flex.cache_write_picos),
        (625_000, 6_250_000)
    );
    assert_eq!(
        nova.rates(Some("flex"), names, 272_001),
        long,
        "flex has no long-context price of its own"
    );
    assert_eq!(
        nova.rates(Some("decisions"), names, 1),
        short,
        "an endpoint, not a tier: the dearest there is"
    );
    assert_eq!(nova.web_search_picos, 50_000_000_000, "the dearest context size");

    let search = table.price_of("gpt-9-search-preview");
    assert!(search.always_searches && !nova.always_searches);
    let rates = search.rates(None, names, 1);
    assert_eq!(
        (rates.audio_input_picos, rates.audio_output_picos),
        (40_000_000, 80_000_000)
    );
    let mini = table.price_of("gpt-9-mini").rates(None, names, 1);
    assert_eq!((mini.input_picos, mini.output_picos), (500_000, 2_000_000));
}

/// A model that only `/v1/responses` serves costs the same as a chat model with these figures.
#[test]
fn a_responses_model_is_priced_as_a_chat_model() {
    let table = PriceTable::merge(builtin(), &imported().overlay).unwrap();
    let rates = |model| table.price_of(model).rates(None, &table.tier_names, 1);
    let pro = rates("gpt-9-pro");
    assert_eq!((pro.input_picos, pro.output_picos), (15_000_000, 120_000_000));
    let codex = rates("gpt-9-codex");
    assert_eq!(
        (codex.input_picos, codex.cached_input_picos, codex.output_picos),
        (1_250_000, 125_000, 10_000_000)
    );
    let figures = r#""input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6"#;
    let json = |mode| format!(r#"{{"m": {{"mode": "{mode}", {figures}}}}}"#);
    let [chat, responses] =
        ["chat", "responses"].map(|mode| import_litellm(&json(mode), OPENAI).unwrap().overlay);
    assert_eq!(chat, responses);
}

/// The list has zero or nothing for an output that never exists. This does not make the model free.
#[test]
fn embeddings_cost_their_input() {
    let overlay = imported().overlay;
    let entry = |model| {
        let mut models = overlay.models();
        models.find(|(name, _)| *name == model).unwrap().1.clone()
    };
    let plain = entry("text-embedding-9");
    let prices = |published: &Published| (published.input.to_string(), published.output.to_string());
    assert_eq!(
        prices(&plain.rates[STANDARD]),
        ("0.02".to_owned(), "0.02".to_owned())
    );
    let tiered = entry("text-embedding-9-tiered");
    let tiers: Vec<&str> = tiered.rates.keys().map(String::as_str).collect();
    assert_eq!(tiers, ["priority", STANDARD]);
    assert_eq!(
        prices(&tiered.rates["priority"]),
        ("0.06".to_owned(), "0.06".to_owned())
    );
    assert_eq!(
        prices(&tiered.long_context[STANDARD]),
        ("0.08".to_owned(), "0.08".to_owned())
    );
    let table = PriceTable::merge(builtin(), &overlay).unwrap();
    let call = CallShape {
        token_ids: 1_000_000,
        ..shape("text-embedding-9")
    };
    assert_eq!(table.estimate(&call).unwrap().get(), 20_000_000);
    for (figures, reason) in [
        (r#""input_cost_per_token": 0.0"#, "`input_cost_per_token` is zero"),
        (
            r#""output_cost_per_token": 1e-6"#,
            "`input_cost_per_token` is missing",
        ),
    ] {
        let json = format!(r#"{{"m": {{"mode": "embedding", {figures}}}}}"#);
        let skipped = import_litellm(&json, OPENAI).unwrap().skipped;
        assert_eq!(skipped[0].reason, reason);
    }
}

#[test]
fn an_import_replaces_figures_and_keeps_the_rest() {
    let table = PriceTable::merge(builtin(), &imported().overlay).unwrap();
    let estimate = |table: &PriceTable, shape: CallShape<'_>| table.estimate(&shape).unwrap().get();
    let completion = |model| CallShape {
        completion_tokens: 1_000_000,
        ..shape(model)
    };
    assert_eq!(estimate(builtin(), completion("gpt-4o")), 10_000_000_000);
    assert_eq!(estimate(&table, completion("gpt-4o")), 8_000_000_000);
    assert_eq!(
        estimate(&table, completion("gpt-4o-2024-11-20")),
        8_000_000_000,
        "an alias of the file"
    );
    assert_eq!(
        estimate(&table, completion("gpt-4o-2024-05-13")),
        15_000_000_000,
        "not in the import"
    );
    let priority = CallShape {
        service_tier: Some("priority"),
        ..completion("gpt-4o")
    };
    assert_eq!(estimate(&table, priority), 13_600_000_000);

    let image = |model| CallShape {
        image_parts: 1,
        ..shape(model)
    };
    for model in ["gpt-4o-mini", "gpt-4o-mini-2024-07-18"] {
        assert_eq!(
            estimate(&table, image(model)),
            estimate(builtin(), image(model)),
            "the allowance stays: {model}"
        );
    }
    let names: Vec<_> = table.models().collect();
    assert!(
        names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]),
        "each name once"
    );
    assert_eq!(names.len(), builtin().models().len() + 7);
}

/// An import without search prices, or without the mark of a model that always searches, keeps those of the file. An
/// import with them takes precedence.
#[test]
fn an_import_forgets_no_search() {
    const FILE: &str = "\
        [models.finder]\naliases = [\"seeker\"]\nweb_search = \"0.004\"\nalways_searches = true\n\
        rates.standard = { input = \"1\", output = \"1\" }\n\
        [models.asked]\nweb_search = \"0.005\"\nrates.standard = { input = \"1\", output = \"1\" }\n\
        [models.dear]\nweb_search = \"0.09\"\nrates.standard = { input = \"1\", output = \"1\" }\n";
    let base = of_models(FILE);
    let entry = |name: &str, more: &str| {
        format!(
            r#""{name}": {{"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6{more}}}"#
        )
    };
    let own = r#", "search_context_cost_per_query": {"low": 0.002, "high": 0.007}"#;
    let fees = |more: &str| {
        let entries = ["finder", "seeker", "asked", "finder-2024-08-06"].map(|name| entry(name, more));
        let json = format!("{{{}}}", entries.join(","));
        let stored = import_litellm(&json, OPENAI)
            .unwrap()
            .overlay
            .to_store_text()
            .unwrap();
        let table = PriceTable::overlaid(base.clone(), Some(&stored)).unwrap();
        let fee = |model, web_search| {
            let call = CallShape {
                web_search,
                ..shape(model)
            };
            table.estimate(&call).unwrap().get()
        };
        [
            fee("finder", false),
            fee("seeker", false),
            fee("finder-2024-08-06", false),
            fee("asked", true),
            fee("asked", false),
        ]
    };
    assert_eq!(fees(""), [4_000_000, 4_000_000, 4_000_000, 5_000_000, 0]);
    assert_eq!(fees(own), [7_000_000, 7_000_000, 7_000_000, 7_000_000, 0]);
}

#[test]
fn the_dearest_includes_the_overlay() {
    let dear = r#"{"dear": {"mode": "chat", "input_cost_per_token": 0.5, "output_cost_per_token": 0.75}}"#;
    let overlay = import_litellm(dear, OPENAI).unwrap().overlay;
    let table = PriceTable::merge(builtin(), &overlay).unwrap();
    let rates = table.price_of("never-heard-of").rates(None, &table.tier_names, 1);
    assert_eq!(
        (rates.input_picos, rates.output_picos),
        (500_000_000_000, 750_000_000_000)
    );
}

#[test]
fn a_newer_import_wins_and_forgets_nothing() {
    let older = imported().overlay;
    let json = r#"{"gpt-4o": {"mode": "chat", "input_cost_per_token": 3e-6, "output_cost_per_token": 4e-6}}"#;
    let newer = import_litellm(json, OPENAI).unwrap().overlay;
    let both = older.merged_with(&newer).unwrap();
    assert_eq!(both.models().len(), older.models().len());
    let table = PriceTable::merge(builtin(), &both).unwrap();
    assert_eq!(
        table
            .price_of("gpt-4o")
            .rates(None, &table.tier_names, 1)
            .input_picos,
        3_000_000
    );
    assert!(table.known("gpt-9-nova").is_some());
}

/// Reasoning is part of the completion, but not every `usage` says which part. So all of it costs the dearer of both
/// prices.
#[test]
fn output_is_the_dearer_of_text_and_reasoning() {
    let rates = |figures: &str, prompt_tokens| {
        let json = format!(r#"{{"m": {{"mode": "chat", "input_cost_per_token": 1e-6, {figures}}}}}"#);
        let table = PriceTable::merge(builtin(), &import_litellm(&json, OPENAI).unwrap().overlay).unwrap();
        let price = table.price_of("m");
        ["default", "flex"].map(|tier| {
            price
                .rates(Some(tier), &table.tier_names, prompt_tokens)
                .output_picos
        })
    };
    for (text, reasoning, output) in [
        ("1.2e-06", "4e-06", 4_000_000),
        ("4e-06", "1.2e-06", 4_000_000),
        ("4e-06", "null", 4_000_000),
        ("4e-06", "0.0", 4_000_000),
    ] {
        let figures =
            format!(r#""output_cost_per_token": {text}, "output_cost_per_reasoning_token": {reasoning}"#);
        assert_eq!(rates(&figures, 1), [output; 2], "{figures}");
    }
    let figures = r#""output_cost_per_token": 2e-06, "output_cost_per_reasoning_token": 3e-06,
        "input_cost_per_token_flex": 1e-6, "output_cost_per_token_flex": 1e-06,
        "input_cost_per_token_above_200k_tokens": 2e-6, "output_cost_per_token_above_200k_tokens": 2.5e-06"#;
    assert_eq!(rates(figures, 1), [3_000_000, 1_000_000]);
    assert_eq!(
        rates(figures, 200_001)[0],
        2_500_000,
        "the list has a price of its own there"
    );
}

#[test]
fn long_context_reprices_only_what_it_names() {
    let json = r#"{"m": {"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6,
        "input_cost_per_token_above_200k_tokens": 2e-6}}"#;
    let table = PriceTable::merge(builtin(), &import_litellm(json, OPENAI).unwrap().overlay).unwrap();
    let long = table.price_of("m").rates(None, &table.tier_names, 200_001);
    assert_eq!((long.input_picos, long.output_picos), (2_000_000, 4_000_000));
}

#[test]
fn other_providers_can_be_chosen() {
    let imported = import_litellm(FIXTURE, "azure").unwrap();
    assert!(imported.overlay.models().any(|(name, _)| name == "azure/gpt-9"));
    assert!(imported.overlay.models().all(|(name, _)| name != "gpt-4o"));
}

#[test]
fn an_invalid_price_list_is_an_error() {
    for json in ["", "[]", "null", "{\"a\": }", "{\"a\": {}} x"] {
        let error = import_litellm(json, OPENAI).unwrap_err();
        assert_eq!(error.to_string(), "the import is no valid JSON", "{json}");
        assert!(std::error::Error::source(&error).is_some());
    }
    let many: Vec<String> = (0..=10_000).map(|i| format!("\"m{i}\": 1")).collect();
    let error = import_litellm(&format!("{{{}}}", many.join(",")), OPENAI).unwrap_err();
    assert_eq!(error.to_string(), "the import has more than 10000 models");
}

#[test]
fn a_stored_overlay_is_checked() {
    for (text, complaint) in [
        ("", "the price overlay is no valid JSON"),
        (
            r#"{"models": {"a": {"rates": {"standard": {"input": 2.5, "output": "1"}}}}}"#,
            "no valid JSON",
        ),
        (
            r#"{"models": {"a": {"rates": {"flex": {"input": "2.5", "output": "1"}}}}}"#,
            "must have `standard`",
        ),
    ] {
        let error = PriceOverlay::from_store_text(text).unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
    let empty = PriceOverlay::from_store_text(&PriceOverlay::default().to_store_text().unwrap()).unwrap();
    let merged = PriceTable::merge(builtin(), &empty).unwrap();
    assert_eq!(
        merged.version(),
        builtin().version(),
        "nothing on top changes nothing"
    );
}
