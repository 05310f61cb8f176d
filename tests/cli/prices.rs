//! Imported prices lie over the file's (decisions D32, D65).

use crate::{ready, refused};
use harness::{Cli, Redis, assert_fields};
use serde_json::{Value, json};

/// The entry of one model in LiteLLM's format.
fn entry(input: &str, output: &str) -> Value {
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    json!({
        "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": number(input),
        "output_cost_per_token": number(output), "supported_endpoints": ["/v1/chat/completions"],
    })
}

fn import(cli: &Cli, models: &Value) -> Value {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, models.to_string()).unwrap();
    cli.json(&["prices", "import", file.path().to_str().unwrap()])
}

#[test]
fn an_import_lies_over_the_file_and_over_earlier_ones() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let show = |model: &str| cli.json(&["prices", "show", model])["models"][0].clone();
    let before = show("gpt-4o-mini");
    assert_fields!(before, { "source": "file", "known": true });
    assert_eq!(show("brand-new")["known"], false);

    let first = import(
        &cli,
        &json!({ "gpt-4o-mini": entry("1e-06", "2e-06"), "brand-new": entry("3e-06", "4e-06") }),
    );
    assert_eq!(first["models"], json!(["brand-new", "gpt-4o-mini"]));
    let after = show("gpt-4o-mini");
    assert_eq!(after["source"], "import");
    assert_fields!(after["prices"]["rates"], { "standard": { "input": "1", "output": "2" } });
    assert_fields!(after["prices"], {
        "image_tokens": before["prices"]["image_tokens"],
    }, "what no import knows stays");

    let second = import(&cli, &json!({ "brand-new": entry("5e-06", "6e-06") }));
    assert_ne!(second["priceVersion"], first["priceVersion"]);
    assert_eq!(show("brand-new")["prices"]["rates"]["standard"]["input"], "5");
    assert_eq!(show("gpt-4o-mini")["source"], "import", "an earlier import stays");
    assert_eq!(show("gpt-4o-mini-2030-01-31")["entry"], "gpt-4o-mini");
}

/// The tokens of an image depend on the model, not on its upstream. They are unknown for a model that the file lacks.
#[test]
fn an_import_for_an_upstream_holds_images_as_the_model_counts_them() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let mut entries = json!({});
    for name in ["azure/gpt-4o-mini", "azure/gpt-4o", "azure/brand-new"] {
        entries[name] = entry("1e-06", "2e-06");
        entries[name]["litellm_provider"] = json!("azure");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, entries.to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    let _report = cli.json(&["prices", "import", path, "--provider", "azure"]);
    let tokens = |model: &str| {
        let shown = cli.json(&["prices", "show", model])["models"][0].clone();
        shown["prices"]["image_tokens"].clone()
    };
    let mini = tokens("gpt-4o-mini");
    assert!(mini.as_u64().unwrap() > 40_000);
    assert_eq!(tokens("azure/gpt-4o-mini"), mini);
    assert_eq!(tokens("azure/gpt-4o"), tokens("gpt-4o"));
    assert_eq!(tokens("azure/brand-new"), mini, "the most of the table");
}

/// A model with a cost that no price covers is imported, and the cost is reported.
#[test]
fn costs_that_are_not_understood_are_named() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let mut models = json!({ "plain": entry("1e-06", "2e-06"), "citing": entry("1e-06", "2e-06") });
    models["citing"]["citation_cost_per_token"] = json!(2e-6);
    models["citing"]["output_cost_per_reasoning_token"] = json!(3e-6);
    let answer = import(&cli, &models);
    assert_eq!(
        answer["ignored"],
        json!([{ "model": "citing", "fields": ["citation_cost_per_token"] }])
    );
    let shown = cli.json(&["prices", "show", "citing"])["models"][0].clone();
    assert_eq!(
        shown["prices"]["rates"]["standard"]["output"], "3",
        "the dearer of text and reasoning"
    );
}

#[test]
fn entries_that_cannot_be_used_are_named() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let models = json!({ "good": entry("1e-06", "2e-06"), "free": entry("0", "0"), "other": { "litellm_provider": "x" } });
    let answer = import(&cli, &models);
    assert_eq!(answer["models"], json!(["good"]));
    let names: Vec<&str> = answer["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["model"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["free", "other"]);
}

#[test]
fn the_published_list_is_read() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/litellm-prices.json");
    let answer = cli.json(&["prices", "import", file]);
    assert!(!answer["models"].as_array().unwrap().is_empty(), "{answer}");
}

#[test]
fn a_file_that_is_no_price_list_changes_nothing() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    for text in ["", "[]", "{", "{}", "{\"x\": {\"litellm_provider\": \"other\"}}"] {
        std::fs::write(&file, text).unwrap();
        let answer = refused(&cli, &["prices", "import", path], 2);
        assert!(
            answer["error"].as_str().unwrap().starts_with(path),
            "{text}: {answer}"
        );
    }
    assert_eq!(redis.command::<u64>(&["EXISTS", "tollgate/prices"]), 0);
}

/// The error names the file, where in it the fault is, and what is expected.
#[test]
fn a_broken_file_is_explained() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    const EXPECTED: &str = "LiteLLM's model_prices_and_context_window.json";
    let other = json!({ "m/x": { "litellm_provider": "mistral", "mode": "chat" } }).to_string();
    let free = json!({ "m": entry("0", "1e-06") }).to_string();
    let odd =
        json!({ "m": { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": "cheap" } });
    let odd = odd.to_string();
    let list = json!({ "m": [1, 2] }).to_string();
    for (text, words) in [
        (&b""[..], &["the file is empty", EXPECTED][..]),
        (b"[]", &["line 1", EXPECTED]),
        (b"{\n\"a\": {},\n\"b\": {,}\n}", &["line 3", EXPECTED]),
        (b"[models.gpt-4o]\ninput = 1\n", &["line 1", EXPECTED]),
        (b"\xff\xfe{}", &["UTF-8", EXPECTED]),
        (b"{}", &["there is no model of openai", EXPECTED]),
        (
            other.as_bytes(),
            &["`m/x`: the provider is `mistral`", "model of openai (--provider)"],
        ),
        (free.as_bytes(), &["`m`: `input_cost_per_token` is zero"]),
        (
            odd.as_bytes(),
            &["`m`: `input_cost_per_token` is no decimal number"],
        ),
        (list.as_bytes(), &["`m`: it is no JSON object"]),
    ] {
        std::fs::write(&file, text).unwrap();
        let answer = refused(&cli, &["prices", "import", path], 2);
        let error = answer["error"].as_str().unwrap();
        assert!(error.starts_with(&format!("{path}: ")), "{error}");
        for word in words {
            assert!(error.contains(word), "{word} in: {error}");
        }
    }
}
