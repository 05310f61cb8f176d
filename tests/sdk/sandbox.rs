//! The calls that succeed, with the sandbox behind the edge in place of [`crate::provider`]: a client shows the text
//! and the usage that the sandbox reports, and their cost stays charged.

use crate::install::Sdk;
use crate::plan::{
    Api, Behaviour, COMPLETION_NANOS, Call, EMBEDDING_TOKEN_NANOS, SETTLED, agents, options, run,
};
use harness::{Caller, Edge, Redis, Seed};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// A provider key that the sandbox accepts.
const KEY: &str = "sk-sandbox-0123456789abcdef";

/// Makes those of the calls that are plain answers, and checks each against what the sandbox sent.
pub async fn prove(sdk: &Arc<Sdk>, calls: &[Call]) {
    let plain = |call: &&Call| {
        matches!(
            call.behaviour,
            Behaviour::Answers | Behaviour::AnswersWithUsage | Behaviour::AnswersWithCost
        )
    };
    let calls: Vec<&Call> = calls.iter().filter(plain).collect();
    assert!(!calls.is_empty());
    let sandbox = start().await;
    let redis = Redis::start();
    let seed = Seed::new(&redis.store()).await;
    let edge = Edge::start(options(&redis, format!("{sandbox}/v1")));
    let (agents, plans) = agents(&seed, &calls).await;
    let outcomes = run(sdk, &edge, &plans).await;
    let sent = self::calls(&sandbox).await;
    assert_eq!(
        (outcomes.len(), sent.len()),
        (calls.len(), calls.len()),
        "{sent:?}"
    );
    for (((call, agent), outcome), sent) in calls.iter().zip(&agents).zip(&outcomes).zip(&sent) {
        check(call, outcome, sent, agent.settled_within(SETTLED).await);
    }
}

/// Starts a sandbox. Returns its address.
pub async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let sandbox = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(sandbox::serve(listener, Duration::ZERO, std::future::pending()));
    sandbox
}

/// Returns what a sandbox says of its calls, in the order in which they ended: that of a client that makes one call
/// after the other.
pub async fn calls(sandbox: &str) -> Vec<Value> {
    let mut document = Caller::new(sandbox, KEY).get("/sandbox/calls").await.json();
    match document["calls"].take() {
        Value::Array(calls) => calls,
        other => panic!("{other}"),
    }
}

/// Checks what a client shows of one call, and its charge in nano-USD, against what the sandbox sent.
fn check(call: &Call, outcome: &Value, sent: &Value, charged: u64) {
    let name = call.name();
    let usage = &sent["usage"];
    let count = |field: &str| usage[field].as_u64().unwrap_or(0);
    assert_eq!(
        json!([sent["status"], sent["end"], sent["stream"]]),
        json!([200, "whole", call.streamed]),
        "{name}: {sent}"
    );
    assert_eq!(outcome["error"], Value::Null, "{name}");
    let text = outcome["text"].as_str().unwrap_or_default();
    let cost = if call.api == Api::Embeddings {
        assert!(
            text.split(',').all(|number| number.parse::<f64>().is_ok()),
            "{name}: {text}"
        );
        count("prompt_tokens") * EMBEDDING_TOKEN_NANOS
    } else {
        assert!(text.contains("Tollgate sandbox"), "{name}: {text}");
        // The sandbox counts the text of streams only.
        let shown = if call.streamed { text.len() } else { 0 };
        assert_eq!(json!(shown), sent["text_bytes"], "{name}: {text}");
        (count("completion_tokens") + count("output_tokens")) * COMPLETION_NANOS
    };
    assert!(cost > 0, "{name}: {sent}");
    assert_eq!(charged, cost, "{name}: {sent}");
    if call.shows_usage {
        assert_eq!(outcome["tokens"], usage["total_tokens"], "{name}");
    }
}
