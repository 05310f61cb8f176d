//! The real cost of a call, to the nano, against amounts worked out by hand (specification §4.4 step 7, decisions D33,
//! D64, D65). Prices are those of `prices.toml` beside this file, in nano-USD a token:
//! `plain` 2,000 in, 500 cached, 8,000 out.

use super::fixture::{Fixture, amounts, open_cap, plain_call};
use super::shape::approved;
use harness::Answer;
use serde_json::{Value, json};

/// `usage` with details.
fn usage(prompt: u64, completion: u64, details: &Value) -> Value {
    let mut usage = json!({
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
    });
    for (name, value) in details.as_object().expect("an object") {
        usage[name] = value.clone();
    }
    usage
}

/// An answer with this usage from this tier. It names another model: the requested one is billed.
fn answer(usage: &Value, tier: Option<&str>) -> Answer {
    Answer::json(
        200,
        json!({ "id": "chatcmpl-1", "model": "another-model", "usage": usage, "service_tier": tier }),
    )
}

/// One row for each input of the price that comes over HTTP. The rules themselves are rows of `price/cost/tests.rs`.
#[tokio::test]
async fn the_real_cost_is_exact() {
    let fixture = Fixture::new().await;
    let none = json!({});
    for (more, usage, tier, nanos) in [
        (json!({}), usage(9, 12, &none), None, 9 * 2000 + 12 * 8000),
        // The tier that the provider reports prices the settlement; without a report the dearer of the requested tier
        // and of the table's `auto_tier`.
        (
            json!({ "service_tier": "flex" }),
            usage(10, 10, &none),
            Some("flex"),
            10 * 1000 + 10 * 4000,
        ),
        (
            json!({ "service_tier": "priority" }),
            usage(10, 10, &none),
            None,
            10 * 4000 + 10 * 16_000,
        ),
        (
            json!({ "web_search_options": {} }),
            usage(9, 12, &none),
            None,
            9 * 2000 + 12 * 8000 + 10_000_000,
        ),
        // Tokens that the call makes the cache keep for longer are dearer.
        (
            json!({ "prompt_cache_options": { "ttl": "12h" } }),
            usage(
                100,
                10,
                &json!({ "prompt_tokens_details": { "cache_write_tokens": 40 } }),
            ),
            None,
            60 * 2000 + 40 * 5000 + 80_000,
        ),
    ] {
        let actor = fixture.actor("enterprise", open_cap()).await;
        let answer = answer(&usage, tier);
        fixture.upstream.set(move |_| answer.clone());
        let reply = actor
            .caller
            .chat_with(&[("x-service-run-id", "r")], plain_call(&more))
            .await;
        approved(&reply);
        assert_eq!(amounts(&reply).1, Some(nanos), "{more} {usage} {tier:?}");
        let counters = actor.agent.counters().await;
        let charged = [counters.day_nanos, counters.month_nanos, counters.tracked_nanos];
        assert_eq!(
            charged, [nanos; 3],
            "the ledger moved to the real cost: {more} {usage}"
        );
        assert_eq!(actor.agent.run_spent("r").await, Some(nanos));
    }
}
