//! Every route of the management API, by its OpenAPI document.

use crate::recording::Recording;
use domain::permission::Permission;
use harness::{Admin, AdminOptions, Caller, Mode, Redis, Reply, Seed};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// An unknown id, where an example has none.
const NOBODY: &str = "nobody";
/// The operations of which every refusal is recorded: one for keys, one for sessions, one for everybody. That all
/// others refuse likewise is shown by `management/matrix.rs` (callers) and `openapi/agreement.rs` (bodies and queries).
const BY_EVERY_CALLER: [(&str, &str); 3] = [
    ("POST", "/api/v1/agents"),
    ("POST", "/api/user/invitations"),
    ("POST", "/api/user/login"),
];
/// The agent that the examples name.
const AGENT: &str = "research-bot";

struct Operation {
    method: String,
    path: String,
    example: Option<Value>,
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let content = &operation["requestBody"]["content"]["application/json"];
            found.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                example: content.get("example").cloned(),
            });
        }
    }
    found.retain(|operation| ["GET", "POST", "PATCH", "PUT", "DELETE"].contains(&operation.method.as_str()));
    found
}

fn with_unknown_ids(path: &str) -> String {
    let mut filled = path.to_owned();
    for name in ["{id}", "{keyId}", "{runId}", "{deliveryId}"] {
        filled = filled.replace(name, NOBODY);
    }
    filled
}

/// The document's own example with unknown ids, by a key that may read and write. Of [`BY_EVERY_CALLER`], also the
/// requests of other callers and malformed ones.
async fn example(recording: &mut Recording, operation: &Operation, [nobody, reader, full]: [&Caller; 3]) {
    let (method, path) = (operation.method.as_str(), with_unknown_ids(&operation.path));
    let (route, with_query) = ((method, path.as_str()), format!("{path}?nonsense=1"));
    let body = operation.example.as_ref().map_or(String::new(), Value::to_string);
    let title = "an id that nobody has";
    recording.call(title, full, route, &[], &body).await;
    if !BY_EVERY_CALLER.contains(&(method, &operation.path)) {
        return;
    }
    let plain = ("content-type", "text/plain");
    let (unknown_query, unknown_field) = ((method, with_query.as_str()), r#"{"nonsense":1}"#);
    for (title, caller, route, headers, body) in [
        ("no key", nobody, route, &[][..], body.as_str()),
        ("a key that may only read", reader, route, &[], &body),
        ("a query that it does not know", full, unknown_query, &[], &body),
        ("a body that is no JSON", full, route, &[], "{"),
        ("a field that it does not know", full, route, &[], unknown_field),
        ("an empty object", full, route, &[], "{}"),
        ("another type of content", full, route, &[plain], &body),
    ] {
        recording.call(title, caller, route, headers, body).await;
    }
}

/// The successful requests, in order, in test mode, where an API key may deposit money.
struct Day<'r> {
    recording: &'r mut Recording,
    caller: Caller,
}

impl Day<'_> {
    async fn get(&mut self, path: &str) -> Value {
        self.send("GET", path, &[], Value::Null).await
    }

    async fn post(&mut self, path: &str, body: Value) -> Value {
        self.send("POST", path, &[], body).await
    }

    async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Value) -> Value {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let route = (method, path);
        let reply: Reply = self
            .recording
            .call("a day's work", &self.caller, route, headers, &body)
            .await;
        serde_json::from_slice(&reply.body).unwrap_or_default()
    }
}

fn id(answer: &Value, pointer: &str) -> String {
    match answer.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => panic!("no {pointer} in {answer}"),
    }
}

async fn agents(day: &mut Day<'_>) -> String {
    day.post(
        "/v1/agents",
        json!({ "id": AGENT, "name": "Research bot", "type": "custom" }),
    )
    .await;
    day.post("/v1/agents", json!({ "name": "Second bot" })).await;
    day.get("/v1/agents").await;
    day.get("/v1/agents?q=research&limit=1").await;
    day.get("/v1/agents?limit=0").await;
    day.get("/v1/agents?offset=1000001").await;
    let made = day.post("/v1/agents", json!({ "name": "Third bot" })).await;
    let agent = made
        .pointer("/agent/id")
        .or_else(|| made.pointer("/id"))
        .and_then(Value::as_str);
    let agent = agent.unwrap_or_else(|| panic!("no id in {made}")).to_owned();
    let path = format!("/v1/agents/{agent}");
    day.get(&path).await;
    day.send(
        "PATCH",
        &path,
        &[],
        json!({ "description": "Reads papers at night.", "spendLimit": 25 }),
    )
    .await;
    day.send("PATCH", &path, &[], json!({ "name": "" })).await;
    day.post(&format!("{path}/freeze"), Value::Null).await;
    day.post(&format!("{path}/unfreeze"), Value::Null).await;
    day.post(
        &format!("{path}/provider-keys"),
        json!({ "provider": "openai", "apiKey": "sk-example-only-a1B2" }),
    )
    .await;
    day.post(
        &format!("{path}/provider-keys"),
        json!({ "provider": "openai", "apiKey": "" }),
    )
    .await;
    day.get(&format!("{path}/provider-keys")).await;
    day.post(&format!("{path}/virtual-keys"), json!({ "name": "laptop" }))
        .await;
    day.get(&format!("{path}/virtual-keys")).await;
    day.get(&format!("{path}/usage")).await;
    day.get(&format!("{path}/runs")).await;
    day.get(&format!("{path}/wallet")).await;
    agent
}

async fn policies(day: &mut Day<'_>, agent: &str) {
    let policy = json!({ "name": "Budget", "agentId": agent, "capEnabled": true, "maxSpendPerDay": 25, "maxSpendPerTransaction": 5 });
    day.post("/v1/policies", policy.clone()).await;
    day.send("POST", "/v1/policies", &[("if-none-match", "*")], policy)
        .await;
    day.post("/v1/policies", json!({ "agentId": agent, "maxSpendPerDay": -1 }))
        .await;
    day.get("/v1/policies").await;
    day.get(&format!("/v1/policies?agentId={agent}")).await;
}

async fn money(day: &mut Day<'_>, agent: &str) {
    day.post(
        "/v1/wallets/create",
        json!({ "botId": agent, "name": "Third bot" }),
    )
    .await;
    day.post("/v1/wallets/create", json!({ "botId": "payee", "name": "Payee" }))
        .await;
    let deposit = json!({ "wallet": agent, "amount": 25, "reference": "wire-1", "currency": "USD" });
    day.post("/v1/wallet/deposits", deposit.clone()).await;
    day.post("/v1/wallet/deposits", deposit).await;
    day.post(
        "/v1/wallet/deposits",
        json!({ "wallet": agent, "amount": 5, "reference": "wire-2", "pending": true }),
    )
    .await;
    day.post("/v1/wallet/deposits/confirm", json!({ "reference": "wire-2" }))
        .await;
    day.post("/v1/wallet/deposits/confirm", json!({ "reference": "wire-3" }))
        .await;
    let key = [("idempotency-key", "order-1")];
    let transfer = json!({ "from": agent, "to": "payee", "amount": 2.5, "memo": "for the search API" });
    day.send("POST", "/v1/wallet/transfer", &key, transfer.clone())
        .await;
    day.send("POST", "/v1/wallet/transfer", &key, transfer).await;
    day.send(
        "POST",
        "/v1/wallet/transfer",
        &key,
        json!({ "from": agent, "to": "payee", "amount": 3 }),
    )
    .await;
    day.post(
        "/v1/wallet/transfer",
        json!({ "from": agent, "to": "payee", "amount": 1_000 }),
    )
    .await;
    day.post(
        "/v1/wallet/transfer",
        json!({ "from": agent, "to": agent, "amount": 1 }),
    )
    .await;
    let spend = json!({ "agent": agent, "amount": 1.25, "recipient": "search.example", "description": "Search credits" });
    let spent = day.post("/v1/spend", spend.clone()).await;
    day.post(
        "/v1/spend",
        json!({ "agent": agent, "amount": 6, "recipient": "search.example" }),
    )
    .await;
    day.post(
        "/v1/spend",
        json!({ "agent": agent, "amount": "1.25", "recipient": "search.example" }),
    )
    .await;
    if let Some(intent) = spent.pointer("/intent_id").and_then(Value::as_str) {
        day.get(&format!("/v1/intents/{intent}")).await;
        day.get(&format!("/v1/intents/{intent}/export")).await;
        day.post(
            &format!("/v1/intents/{intent}/approve"),
            json!({ "reason": "Checked." }),
        )
        .await;
    }
    for path in [
        "/v1/wallet",
        "/v1/transactions?limit=2",
        "/v1/transactions?type=spend",
        "/v1/intents",
        "/v1/overview",
    ] {
        day.get(path).await;
    }
}

async fn escrow(day: &mut Day<'_>, agent: &str) {
    let create = json!({ "fromWalletId": agent, "toWalletId": "payee", "amount": 2, "conditions": { "deliver": "report.pdf" } });
    let made = day.post("/v1/escrow/create", create).await;
    let number: u64 = id(&made, "/escrow/id").parse().unwrap();
    let one = json!({ "escrowId": number });
    for step in ["release", "fund", "fund", "release", "dispute"] {
        day.post(&format!("/v1/escrow/{step}"), one.clone()).await;
    }
    day.get("/v1/escrow").await;
    day.get(&format!("/v1/escrow/{number}")).await;
}

async fn remaining_operations(day: &mut Day<'_>, agent: &str) {
    let dry_run = json!({ "agent": agent, "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "Hello" }] });
    day.post("/v1/decisions/dry-run", dry_run).await;
    day.post(
        "/v1/webhooks",
        json!({ "url": "http://10.0.0.1/x", "events": ["agent.frozen"] }),
    )
    .await;
    day.post(
        "/v1/webhooks",
        json!({ "url": "https://hooks.example/x", "events": ["no.such"] }),
    )
    .await;
    day.get("/v1/webhooks").await;
    day.post(
        "/v1/api-keys",
        json!({ "name": "CI", "mode": "test", "permissions": ["read"] }),
    )
    .await;
    day.get("/v1/account").await;
    for path in [
        "/v1/audit?limit=3",
        "/v1/audit?type=agent.frozen",
        "/v1/audit/verify",
        "/v1/no/such/route",
    ] {
        day.get(path).await;
    }
    day.send("DELETE", &format!("/v1/agents/{agent}"), &[], Value::Null)
        .await;
    day.send("PUT", "/v1/agents", &[], json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_management_api_answers_as_before() {
    let redis = Redis::start();
    let seed = Seed::new(&redis.store()).await;
    let admin = Admin::start(AdminOptions::new(BINARY, redis.url()));
    let account = seed.account("startup").await;
    let key = async |mode, permissions: &[Permission]| {
        let key = account.issue(mode, permissions, &[], None).await;
        Caller::new(&admin.url(), &key.secret)
    };
    let nobody = Caller::new(&admin.url(), "");
    let reader = key(Mode::Test, &[Permission::Read]).await;
    let full = key(Mode::Test, &[Permission::Read, Permission::Write]).await;
    let document: Value =
        serde_json::from_str(include_str!("../../docs/reference/openapi/management.json")).unwrap();
    let mut recording = Recording::new();
    for operation in operations(&document) {
        example(&mut recording, &operation, [&nobody, &reader, &full]).await;
    }
    let other = seed.account("startup").await;
    let key = other
        .issue(
            Mode::Test,
            &[Permission::Read, Permission::Write, Permission::Approve],
            &[],
            None,
        )
        .await;
    let mut day = Day {
        recording: &mut recording,
        caller: Caller::new(&admin.url(), &key.secret),
    };
    let agent = agents(&mut day).await;
    policies(&mut day, &agent).await;
    money(&mut day, &agent).await;
    escrow(&mut day, &agent).await;
    remaining_operations(&mut day, &agent).await;
    recording.compare_with("management.txt", || admin.logs()).await;
}
