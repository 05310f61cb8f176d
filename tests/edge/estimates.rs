//! The estimate of a call, to the nano, against amounts worked out by hand (specification §4.4 step 4, decisions D31, D32,
//! D65). Prices are those of `prices.toml` beside this file, in nano-USD a token:
//! `plain` 2,000 in, 500 cached, 2,500 written, 8,000 out.

use super::shape::approved;
use super::stage::{Stage, amounts, open_cap};
use harness::{EdgeOptions, chat_body};
use serde_json::{Value, json};

/// Eight bytes: two tokens.
const TWO_TOKENS: &str = "12345678";

/// A call of `plain` with two tokens of prompt and ten of completion, changed by `more`.
fn call(more: &Value) -> Value {
    let mut body = chat_body("plain", TWO_TOKENS);
    body["max_tokens"] = 10.into();
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

fn content(parts: &Value) -> Value {
    json!([{ "role": "user", "content": parts }])
}

#[tokio::test]
async fn estimates_are_exact() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let text = json!({ "type": "text", "text": TWO_TOKENS });
    let image = json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{}", "A".repeat(9999)) } });
    let audio =
        json!({ "type": "input_audio", "input_audio": { "data": "A".repeat(9999), "format": "wav" } });
    let file = json!({ "type": "file", "file": { "file_data": "A".repeat(9999) } });
    for (more, nanos) in [
        (json!({}), 2 * 2000 + 10 * 8000),
        (json!({ "max_tokens": null }), 2 * 2000 + 1024 * 8000),
        (
            json!({ "max_tokens": 10_000, "max_completion_tokens": 20 }),
            2 * 2000 + 20 * 8000,
        ),
        (
            json!({ "max_tokens": null, "max_completion_tokens": 20 }),
            2 * 2000 + 20 * 8000,
        ),
        (json!({ "n": 3 }), 2 * 2000 + 3 * 10 * 8000),
        (
            json!({ "n": 128, "max_tokens": null }),
            2 * 2000 + 128 * 1024 * 8000,
        ),
        // Nine bytes are three tokens; characters count by their bytes.
        (
            json!({ "messages": content(&"123456789".into()) }),
            3 * 2000 + 80_000,
        ),
        (json!({ "messages": content(&"éééé".into()) }), 2 * 2000 + 80_000),
        (json!({ "messages": content(&"éééé1".into()) }), 3 * 2000 + 80_000),
        // Tools and schemas are prompt text: `[{"a":"12345678"}]` has 18 bytes, with the message 26, so 7 tokens.
        (json!({ "tools": [{ "a": TWO_TOKENS }] }), 7 * 2000 + 80_000),
        (
            json!({ "response_format": { "a": TWO_TOKENS } }),
            6 * 2000 + 80_000,
        ),
        (
            json!({ "messages": [{ "role": "user", "name": "abcd", "content": TWO_TOKENS }] }),
            3 * 2000 + 80_000,
        ),
        // Parts count their allowance, not their bytes.
        (
            json!({ "messages": content(&json!([text, image])) }),
            (2 + 100) * 2000 + 80_000,
        ),
        (
            json!({ "messages": content(&json!([text, file])) }),
            (2 + 300) * 2000 + 80_000,
        ),
        (
            json!({ "model": "sound", "messages": content(&json!([text, audio])) }),
            2 * 2000 + 200 * 40_000 + 80_000,
        ),
        (
            json!({ "model": "sound", "modalities": ["text", "audio"] }),
            2 * 2000 + 10 * 80_000,
        ),
        // The tier asked for prices the estimate; an unknown one takes the dearest, `default` is the standard.
        (json!({ "service_tier": "flex" }), 2 * 1000 + 10 * 4000),
        (json!({ "service_tier": "priority" }), 2 * 4000 + 10 * 16_000),
        (json!({ "service_tier": "fast" }), 2 * 4000 + 10 * 16_000),
        (json!({ "service_tier": "warp" }), 2 * 4000 + 10 * 16_000),
        (json!({ "service_tier": "default" }), 2 * 2000 + 10 * 8000),
        (json!({ "service_tier": "auto" }), 2 * 2000 + 10 * 8000),
        // Long context begins above 1,000 tokens and covers the whole call.
        (
            json!({ "messages": content(&"x".repeat(4000).into()) }),
            1000 * 2000 + 80_000,
        ),
        (
            json!({ "messages": content(&"x".repeat(4001).into()) }),
            1001 * 3000 + 10 * 12_000,
        ),
        // A search fee: the model's own, or the table's dearest. `{}` has two bytes that count.
        (json!({ "model": "search" }), 2 * 2000 + 80_000 + 10_000_000),
        (
            json!({ "web_search_options": {} }),
            3 * 2000 + 80_000 + 10_000_000,
        ),
        // Aliases, snapshots and fine-tuned models have their base's price.
        (json!({ "model": "seek" }), 2 * 2000 + 80_000 + 10_000_000),
        (json!({ "model": "plain-2030-01-31" }), 2 * 2000 + 80_000),
        (json!({ "model": "ft:plain:org::id" }), 2 * 2000 + 80_000),
        // An unknown model takes the dearest of each kind.
        (
            json!({ "model": "who-knows" }),
            2 * 4000 + 10 * 16_000 + 10_000_000,
        ),
        // 1,000 + 1 pico-USD are rounded up to two nanos, 1,000 to one.
        (
            json!({ "model": "grain", "max_tokens": 1, "messages": content(&"x".repeat(4000).into()) }),
            2,
        ),
        (
            json!({ "model": "grain", "max_tokens": 1, "messages": content(&"x".repeat(3996).into()) }),
            1,
        ),
    ] {
        let reply = actor.caller.chat(call(&more)).await;
        approved(&reply);
        assert_eq!(amounts(&reply).0, nanos, "{more}");
    }
}

/// The table that is shipped, at published prices: gpt-4o-mini at 0.15 and 0.60 USD per million tokens.
#[tokio::test]
async fn the_shipped_prices_are_the_published_ones() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/config/prices.toml");
    let stage = Stage::with(|options: EdgeOptions| options.env("TOLLGATE_PRICES__FILE", shipped)).await;
    let actor = stage.actor("enterprise", open_cap()).await;
    for (model, estimate, actual) in [
        ("gpt-4o-mini", 2 * 150 + 1024 * 600, 9 * 150 + 12 * 600),
        ("gpt-4o-mini-2024-07-18", 2 * 150 + 1024 * 600, 9 * 150 + 12 * 600),
        ("gpt-4o", 2 * 2500 + 1024 * 10_000, 9 * 2500 + 12 * 10_000),
        (
            "ft:gpt-4o-mini-2024-07-18:org::id",
            2 * 150 + 1024 * 600,
            9 * 150 + 12 * 600,
        ),
    ] {
        let reply = actor.caller.chat(chat_body(model, "hello")).await;
        if model.starts_with("ft:") {
            // A fine-tuned model has a price of its own where the table lists it, never less than its base.
            assert!(
                amounts(&reply).0 >= estimate && amounts(&reply).1 >= Some(actual),
                "{reply:?}"
            );
        } else {
            assert_eq!(amounts(&reply), (estimate, Some(actual)), "{model}");
        }
    }
}
