//! OpenAI's SDKs and the frameworks based on them, against the edge, with only address and key changed.
//!
//! Here: the official SDKs without streams and with their own retries. Errors arrive as the SDK's own exception types
//! with `code`, and no charged failure is sent twice (decision D46).
//!
//! * [`install`]: the clients and their versions
//! * [`plan`]: calls for a client, and their expected outcomes
//! * [`provider`]: the answers of the provider
//! * [`sandbox`]: the plain calls once more, with the sandbox as the provider
//! * [`streams`]: the official SDKs, streamed and not, with chat completions, responses and embeddings
//! * [`frameworks`]: LangChain, the OpenAI Agents SDK, LiteLLM, Pydantic AI, LlamaIndex, the Vercel AI SDK
//! * [`codex`]: the Codex command line
//! * [`snippets`]: the texts of the dashboard's Connect page
//! * [`document`]: the documented table of tested clients
#![cfg(test)]

mod codex;
mod document;
mod frameworks;
mod install;
mod plan;
mod provider;
mod sandbox;
mod snippets;
mod streams;

use harness::{Answer, CapPolicy, Edge, EdgeOptions, Nanos, Recorded, Redis, Seed, SeedAgent, Upstream};
use install::Sdk;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The estimate of each call, in nanos.
const ESTIMATE: u64 = 100;
/// Cost of a call with the usage 9 + 12, in nano-USD.
const ACTUAL: u64 = 12;
const RUN: &str = "sdk-run";
const PRICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/edge/prices.toml");

/// A call and its expected outcome.
struct Case {
    name: &'static str,
    /// The SDK's classes, in Python and in Node; none for a success.
    classes: Option<[&'static str; 2]>,
    status: u16,
    code: &'static str,
    /// Requests that reach the provider.
    sent: usize,
    /// Charge that stays, in nano-USD.
    charged: u64,
}

const fn same(class: &'static str) -> Option<[&'static str; 2]> {
    Some([class, class])
}

const fn case(
    name: &'static str,
    classes: Option<[&'static str; 2]>,
    status: u16,
    code: &'static str,
    sent: usize,
    charged: u64,
) -> Case {
    Case {
        name,
        classes,
        status,
        code,
        sent,
        charged,
    }
}

const CASES: [Case; 15] = [
    case("success", None, 200, "", 1, ACTUAL),
    case("models", None, 200, "", 0, 0),
    case(
        "wrong key",
        same("AuthenticationError"),
        401,
        "invalid_api_key",
        0,
        0,
    ),
    case(
        "stream",
        same("BadRequestError"),
        400,
        "stream_not_supported",
        0,
        0,
    ),
    // Neither SDK has a class of its own for 402.
    case(
        "over the cap",
        Some(["APIStatusError", "APIError"]),
        402,
        "daily_limit",
        0,
        0,
    ),
    case("frozen", same("PermissionDeniedError"), 403, "frozen", 0, 0),
    case("too many", same("RateLimitError"), 429, "rate_limited", 0, 0),
    case(
        "undecided",
        same("InternalServerError"),
        503,
        "service_unavailable",
        0,
        0,
    ),
    // The provider's own answers after an approval.
    case("provider 400", same("BadRequestError"), 400, "provider_400", 1, 0),
    // Released, so the SDK may try again as it does without the edge: three requests, none of them charged.
    case("provider 429", same("RateLimitError"), 429, "provider_429", 3, 0),
    // Charged, so it is sent once.
    case(
        "provider 500",
        same("InternalServerError"),
        500,
        "provider_500",
        1,
        ESTIMATE,
    ),
    case(
        "provider 503",
        same("InternalServerError"),
        503,
        "provider_503",
        1,
        ESTIMATE,
    ),
    case(
        "reset",
        same("InternalServerError"),
        502,
        "upstream_unreachable",
        1,
        ESTIMATE,
    ),
    case(
        "truncated",
        same("InternalServerError"),
        502,
        "upstream_unreachable",
        1,
        ESTIMATE,
    ),
    case(
        "hang",
        same("InternalServerError"),
        504,
        "upstream_timeout",
        1,
        ESTIMATE,
    ),
];

/// The provider's answer, which the text of the message selects.
fn answer(request: &Recorded) -> Answer {
    let error = |status: u16| Answer::error(status, &format!("provider_{status}"), "as told");
    match name_of(request).as_str() {
        "provider 400" => error(400),
        "provider 429" => error(429).header("retry-after-ms", "10"),
        // A retry that the provider requests is not made at the caller's cost.
        "provider 500" => error(500).header("x-should-retry", "true"),
        "provider 503" => error(503).header("retry-after-ms", "10"),
        "reset" => Answer::reset(),
        "truncated" => Answer::chat(9, 12).truncated(10),
        "hang" => Answer::hang(),
        _ => Answer::chat(9, 12),
    }
}

fn name_of(request: &Recorded) -> String {
    let body = request.json();
    body["messages"][0]["content"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// An agent for a case, and its key.
async fn actor(seed: &Seed, redis: &Redis, name: &str) -> (SeedAgent, String) {
    let limit = if name == "over the cap" {
        ESTIMATE - 1
    } else {
        1_000_000
    };
    let cap = CapPolicy {
        enabled: true,
        daily: Nanos::new(limit),
        ..CapPolicy::default()
    };
    let (agent, _) = seed.ready_agent("builder", cap).await;
    let (key_id, key) = agent.virtual_key_with_id().await;
    match name {
        "wrong key" => return (agent, format!("vk_live_{}", "0a".repeat(32))),
        "frozen" => agent.frozen(true).await,
        "undecided" => agent.provider_key_sealed("pk_broken", "sealed by nobody").await,
        "too many" => {
            let rate = agent.account.keys.rate(&key_id);
            let _: String = redis.command(&["SET", &rate, "120", "PX", "60000"]);
        }
        _ => {}
    }
    (agent, key)
}

fn announced_retries(edge: &Edge) -> u64 {
    edge.metric("tollgate_proxy_announced_retries_total")
        .expect("the metric")
}

/// Checks one outcome; `column` is the SDK's place in [`Case::classes`].
fn check(case: &Case, column: usize, outcome: &Value) {
    let name = case.name;
    let Some(classes) = case.classes else {
        if name == "models" {
            let models = outcome["models"].as_array().expect("a list of models");
            assert!(models.contains(&json!("nano")), "{outcome}");
        } else {
            let shown = json!([outcome["content"], outcome["totalTokens"], outcome["runId"]]);
            assert_eq!(shown, json!(["Hello.", 21, RUN]), "{name}");
            assert!(
                outcome["allowId"]
                    .as_str()
                    .is_some_and(|id| id.starts_with("allow_")),
                "{outcome}"
            );
        }
        return;
    };
    let shown = json!([outcome["class"], outcome["status"], outcome["code"]]);
    assert_eq!(
        shown,
        json!([classes[column], case.status, case.code]),
        "{name}: {outcome}"
    );
    assert!(outcome["requestId"].is_string(), "{name}: {outcome}");
    if matches!(case.status, 402 | 403) {
        assert_eq!(outcome["type"], "service_denied", "{name}");
    }
}

async fn prove(sdk: Sdk, column: usize) {
    let redis = Redis::start();
    let upstream = Upstream::start(answer);
    let seed = Seed::new(&redis.store()).await;
    let edge = Edge::start(
        EdgeOptions::new(
            env!("CARGO_BIN_EXE_tollgate-proxy"),
            redis.url(),
            upstream.base_url(),
        )
        .env("TOLLGATE_PRICES__FILE", PRICES)
        .env("TOLLGATE_UPSTREAM__TIMEOUT_MS", "3000"),
    );
    let mut actors = Vec::new();
    let mut calls = Vec::new();
    for case in &CASES {
        let (agent, key) = actor(&seed, &redis, case.name).await;
        actors.push(agent);
        // The SDKs wait as long as `Retry-After: 60` says, twice. That is right, and too long for a test: this one case
        // is sent once.
        let max_retries = (case.name == "too many").then_some(0);
        calls.push(json!({
            "name": case.name, "key": key, "maxTokens": ESTIMATE, "stream": case.name == "stream",
            "maxRetries": max_retries,
        }));
    }
    let plan = json!({ "baseUrl": format!("{}/v1", edge.url()), "runId": RUN, "calls": calls });
    let printed = tokio::task::spawn_blocking(move || sdk.run(&plan.to_string()))
        .await
        .expect("the script");
    let outcomes: Vec<Value> =
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert_eq!(outcomes.len(), CASES.len());

    let mut sent: HashMap<String, usize> = HashMap::new();
    for request in upstream.requests() {
        *sent.entry(name_of(&request)).or_default() += 1;
    }
    for ((case, agent), outcome) in CASES.iter().zip(&actors).zip(&outcomes) {
        check(case, column, outcome);
        assert_eq!(
            sent.get(case.name).copied().unwrap_or(0),
            case.sent,
            "{}: requests at the provider",
            case.name
        );
        assert_eq!(
            agent.counters().await.day_nanos,
            case.charged,
            "{}: what stays charged",
            case.name
        );
    }
    // Two for the undecided call, two for the provider's 429; none for charged failures.
    assert_eq!(announced_retries(&edge), 4, "the SDK's own retries are counted");
}

#[tokio::test]
async fn the_official_python_sdk_works_with_the_edge() {
    prove(Sdk::python("calls.py"), 0).await;
}

#[tokio::test]
async fn the_official_node_sdk_works_with_the_edge() {
    prove(Sdk::node("calls.mjs"), 1).await;
}
