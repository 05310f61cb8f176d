//! The Connect page's snippets for curl, Python, Node.js, LangChain and LiteLLM, run exactly as the page shows them
//! with the key in the environment. Behind the edge is the sandbox. Each answer is printed, and its call is listed as
//! settled.

use crate::install::{NODE_SDK, PYTHON_FRAMEWORKS, PYTHON_SDK, Sdk};
use crate::plan::{COMPLETION_NANOS, SETTLED, options};
use crate::sandbox;
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Edge, Redis, Seed, assert_fields, open_cap};
use serde_json::{Value, json};

const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Every client of the page but Codex, in the order of the page.
const CLIENTS: [&str; 5] = ["curl", "python", "node", "langchain", "litellm"];

#[tokio::test]
#[ignore = "long: make verify runs it"]
async fn the_snippets_of_the_connect_page_work() {
    let provider = sandbox::start().await;
    let redis = Redis::start();
    let seed = Seed::new(&redis.store()).await;
    let edge = Edge::start(options(&redis, format!("{provider}/v1")));
    let admin = Admin::start(AdminOptions::new(ADMIN, redis.url()));
    let mut agents = Vec::new();
    let mut keys = json!({});
    for client in CLIENTS {
        let (agent, key) = seed.ready_agent("enterprise", open_cap()).await;
        agents.push(agent);
        keys[client] = json!(key);
    }
    let sdk_python = Sdk::python_program();
    let frameworks_python = Sdk::frameworks_python_program();
    let plan = json!({
        "base": format!("{}/v1", edge.url()), "model": "gpt-4o-mini", "keys": keys,
        "python": { "python": sdk_python, "langchain": frameworks_python, "litellm": frameworks_python },
    });
    let run = tokio::task::spawn_blocking(move || Sdk::node("snippets.mjs").run(&plan.to_string()));
    let outcomes: Vec<Value> = serde_json::from_str(&run.await.expect("the script")).expect("JSON");
    let ran: Vec<&Value> = outcomes.iter().map(|outcome| &outcome["id"]).collect();
    assert_eq!(json!(ran), json!(CLIENTS), "a client without a test");
    for outcome in &outcomes {
        assert_eq!(outcome["status"], 0, "{outcome}");
    }
    let sent = sandbox::calls(&provider).await;
    assert_eq!(sent.len(), CLIENTS.len(), "{sent:?}");
    for ((outcome, agent), sent) in outcomes.iter().zip(&agents).zip(&sent) {
        let printed = outcome["printed"].as_str().expect("a text");
        assert!(printed.contains("Tollgate sandbox"), "{outcome}");
        installs_what_is_tested(outcome);
        let charged = agent.settled_within(SETTLED).await;
        let completion = sent["usage"]["completion_tokens"].as_u64().expect("a count");
        assert_eq!(charged, completion * COMPLETION_NANOS, "{outcome} {sent}");
        let api = admin.caller(&agent.account.api_key(Mode::Live).await);
        let page = api.get("/v1/calls").await.json();
        assert_eq!(page["calls"].as_array().map(Vec::len), Some(1), "{page}");
        assert_fields!(page["calls"][0], { "outcome": "settled", "model": "gpt-4o-mini" }, "{outcome}");
    }
}

/// Asserts that the package of the line under "Install" is one of those that the tests run.
#[track_caller]
fn installs_what_is_tested(outcome: &Value) {
    let Some(line) = outcome["install"].as_str() else {
        assert_eq!(outcome["id"], "curl");
        return;
    };
    let (installer, package) = line.split_once(" install ").expect("an installer");
    let mut tested = match installer {
        "pip" => [PYTHON_SDK].into_iter().chain(PYTHON_FRAMEWORKS).collect(),
        _ => vec![NODE_SDK],
    };
    tested.retain(|one| one.split(['=', '@']).next() == Some(package));
    assert!(!tested.is_empty(), "{line}");
}
