//! The estimate of a call, to the nano, against amounts worked out by hand (specification §4.4 step 4, decisions D31,
//! D32, D65). Prices are those of `prices.toml` beside this file, in nano-USD a token: `plain` 2,000 in, 8,000 out.

use super::fixture::{Fixture, TWO_TOKENS, amounts, cap, open_cap, plain_call};
use super::shape::approved;
use harness::{Answer, EdgeOptions, chat_body};
use serde_json::{Value, json};

fn content(parts: &Value) -> Value {
    json!([{ "role": "user", "content": parts }])
}

/// One row for each kind of input of the estimate. The counts of a body are tested in `chat/src/tests/sizes.rs`, their
/// prices in `price/estimate/tests.rs`.
#[tokio::test]
async fn estimates_are_exact() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let text = json!({ "type": "text", "text": TWO_TOKENS });
    let image = json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{}", "A".repeat(9999)) } });
    for (more, nanos) in [
        (json!({}), 6 * 2000 + 10 * 8000),
        (json!({ "max_tokens": null }), 6 * 2000 + 1024 * 8000),
        (json!({ "n": 3 }), 6 * 2000 + 3 * 10 * 8000),
        // Parts count their allowance, not their bytes.
        (
            json!({ "messages": content(&json!([text, image])) }),
            (6 + 2 + 100) * 2000 + 80_000,
        ),
        (json!({ "service_tier": "flex" }), 6 * 1000 + 10 * 4000),
        // The table's dearest search fee. `{}` has two bytes that count.
        (
            json!({ "web_search_options": {} }),
            7 * 2000 + 80_000 + 10_000_000,
        ),
        // An alias has the price, and the search fee, of its model.
        (json!({ "model": "seek" }), 6 * 2000 + 80_000 + 10_000_000),
        // An unknown model takes the dearest of each kind.
        (json!({ "model": "who-knows" }), 6 * 4000 + 10 * 16_000),
    ] {
        let reply = actor.caller.chat(plain_call(&more)).await;
        approved(&reply);
        assert_eq!(amounts(&reply).0, nanos, "{more}");
    }
}

/// The table that is shipped, at published prices: gpt-4o-mini at 0.15 and 0.60 USD per million tokens.
#[tokio::test]
async fn the_shipped_prices_are_the_published_ones() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/config/prices.toml");
    let fixture = Fixture::with(|options: EdgeOptions| options.env("TOLLGATE_PRICES__FILE", shipped)).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    for (model, estimate, actual) in [
        ("gpt-4o-mini", 6 * 150 + 1024 * 600, 9 * 150 + 12 * 600),
        ("gpt-4o-mini-2024-07-18", 6 * 150 + 1024 * 600, 9 * 150 + 12 * 600),
        ("gpt-4o", 6 * 2500 + 1024 * 10_000, 9 * 2500 + 12 * 10_000),
        (
            "ft:gpt-4o-mini-2024-07-18:org::id",
            6 * 150 + 1024 * 600,
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

/// Decision D68. On the code before it 2,000 empty messages were estimated at one completion token, and a hundred such
/// calls at once were billed at a hundred times the run's cap.
#[tokio::test]
async fn empty_messages_and_parts_are_held_for_their_framing() {
    let fixture = Fixture::new().await;
    let empty = json!({ "role": "user", "content": "" });
    let part = json!({ "type": "text", "text": "" });
    let predicted = json!({ "type": "content", "content": TWO_TOKENS });
    let actor = fixture.actor("enterprise", open_cap()).await;
    for (more, nanos) in [
        (
            json!({ "max_tokens": 1, "messages": vec![&empty; 2000] }),
            8000 * 3000 + 12_000,
        ),
        (
            json!({ "max_tokens": 1, "messages": vec![&empty; 200] }),
            800 * 2000 + 8000,
        ),
        (
            json!({ "max_tokens": 1, "messages": content(&json!(vec![&part; 500])) }),
            504 * 2000 + 8000,
        ),
        // The tokens of a prediction can be billed as output: two of eight.
        (json!({ "prediction": predicted }), 6 * 2000 + 2 * 8000 + 80_000),
    ] {
        let reply = actor.caller.chat(plain_call(&more)).await;
        approved(&reply);
        assert_eq!(amounts(&reply).0, nanos, "{}", more["messages"][0]);
    }
}

/// A crowd of such calls under a run cap that has room for one such call: one is approved, however many come at once.
#[tokio::test]
async fn a_crowd_of_empty_messages_stays_under_its_cap() {
    let fixture = Fixture::new().await;
    fixture.upstream.set(|_| Answer::chat(8000, 1));
    let one = 8000 * 3000 + 12_000;
    let actor = fixture.actor("enterprise", cap(Some(one), None, None)).await;
    let messages = vec![json!({ "role": "user", "content": "" }); 2000];
    let body = plain_call(&json!({ "max_tokens": 1, "messages": messages }));
    let calls = (0..20).map(|_| {
        actor
            .caller
            .chat_with(&[("x-service-run-id", "crowd")], body.clone())
    });
    let statuses: Vec<u16> = futures::future::join_all(calls)
        .await
        .iter()
        .map(|reply| reply.status)
        .collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(fixture.upstream.arrived(), 1);
    assert_eq!(actor.agent.counters().await.day_nanos, one);
}
