//! Every approval, denial and refusal of the edge.

use crate::recording::Recording;
use harness::{
    Answer, Caller, CapPolicy, Edge, EdgeOptions, Nanos, Redis, Seed, SeedAgent, Upstream, chat_body,
    open_cap,
};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
pub const MODEL: &str = "gpt-4o-mini";
const CHAT: (&str, &str) = ("POST", "/v1/chat/completions");

/// Store, provider and edge, and what is recorded of them.
pub struct Fixture {
    pub recording: Recording,
    pub edge: Edge,
    seed: Seed,
    pub upstream: Upstream,
    redis: Redis,
}

impl Fixture {
    /// Starts with these settings (such as `PROXY__STREAMING`).
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let redis = Redis::start();
        let upstream = Upstream::start(|_| Answer::chat(9, 12));
        let seed = Seed::new(&redis.store()).await;
        let options = EdgeOptions::new(BINARY, redis.url(), upstream.base_url())
            .env("TOLLGATE_UPSTREAM__TIMEOUT_MS", "1000")
            .env("TOLLGATE_PROXY__MAX_BODY_BYTES", "100000");
        let options = settings.iter().fold(options, |options, (name, value)| {
            options.env(&format!("TOLLGATE_{name}"), *value)
        });
        let edge = Edge::start(options);
        Self {
            recording: Recording::new(),
            edge,
            seed,
            upstream,
            redis,
        }
    }

    pub async fn agent(&self, plan: &str, cap: CapPolicy) -> (SeedAgent, Caller) {
        let (agent, key) = self.seed.ready_agent(plan, cap).await;
        (agent, Caller::new(&self.edge.url(), &key))
    }

    pub async fn call(&mut self, title: &str, caller: &Caller, headers: &[(&str, &str)], body: &str) {
        self.recording.call(title, caller, CHAT, headers, body).await;
    }
}

fn body() -> String {
    chat_body(MODEL, "hello").to_string()
}

/// The body of a call with one field added or replaced.
pub fn with(field: &str, value: Value) -> String {
    let mut body = chat_body(MODEL, "hello");
    body[field] = value;
    body.to_string()
}

async fn approvals(fixture: &mut Fixture) {
    let (_, caller) = fixture.agent("startup", open_cap()).await;
    fixture.call("approved", &caller, &[], &body()).await;
    fixture
        .call("a run", &caller, &[("x-service-run-id", "nightly-42")], &body())
        .await;
    fixture
        .call(
            "another run",
            &caller,
            &[("x-service-run-id", "nightly-43")],
            &body(),
        )
        .await;
    fixture
        .call("with a limit", &caller, &[], &with("max_tokens", json!(7)))
        .await;
    fixture
        .call(
            "with the newer limit",
            &caller,
            &[],
            &with("max_completion_tokens", json!(7)),
        )
        .await;
    fixture
        .call("three answers", &caller, &[], &with("n", json!(3)))
        .await;
    fixture
        .call(
            "an upstream header",
            &caller,
            &[("openai-organization", "org-1"), ("x-request-id", "mine")],
            &body(),
        )
        .await;
    for (title, answer) in [
        (
            "the provider refuses",
            Answer::error(400, "bad", "no such parameter sk-abcdefghijklmnop"),
        ),
        (
            "the provider knows no such key",
            Answer::error(401, "invalid_api_key", "Incorrect API key provided: sk-abc***xyz"),
        ),
        (
            "the provider is busy",
            Answer::error(429, "rate_limit", "slow down").header("retry-after", "3"),
        ),
        ("the provider fails", Answer::error(500, "oops", "oops")),
        ("no usage", Answer::chat_with_usage(Value::Null)),
        ("no JSON", Answer::bytes(200, "hello")),
        ("compressed", Answer::chat(9, 12).gzip()),
        ("the connection breaks", Answer::reset()),
        ("no answer in time", Answer::hang()),
    ] {
        fixture.upstream.set(move |_| answer.clone());
        fixture.call(title, &caller, &[], &body()).await;
    }
    fixture.upstream.set(|_| Answer::chat(9, 12));
}

async fn denials(fixture: &mut Fixture) {
    let little = Nanos::new(1);
    for (title, cap) in [
        (
            "per_run_limit",
            CapPolicy {
                per_run: little,
                ..open_cap()
            },
        ),
        (
            "daily_limit",
            CapPolicy {
                daily: little,
                ..open_cap()
            },
        ),
        (
            "monthly_limit",
            CapPolicy {
                monthly: little,
                ..open_cap()
            },
        ),
        ("cap_disabled", CapPolicy::default()),
    ] {
        let (_, caller) = fixture.agent("free", cap).await;
        fixture.call(title, &caller, &[], &body()).await;
    }
    let (agent, caller) = fixture.agent("free", open_cap()).await;
    agent.frozen(true).await;
    fixture.call("frozen", &caller, &[], &body()).await;
    let (agent, caller) = fixture.agent("free", open_cap()).await;
    agent
        .provider_key_sealed("pk_broken", "not sealed by anyone")
        .await;
    fixture
        .call("a provider key that does not open", &caller, &[], &body())
        .await;
    let agent = fixture.seed.account("free").await.agent("bot");
    agent.cap(open_cap()).await;
    let caller = Caller::new(&fixture.edge.url(), &agent.virtual_key().await);
    fixture.call("no_provider_key", &caller, &[], &body()).await;
    let account = fixture.seed.account("free").await;
    account.agent("older").virtual_key().await;
    let agent = account.agent("bot");
    let caller = Caller::new(&fixture.edge.url(), &agent.virtual_key().await);
    fixture.call("plan_key_limit", &caller, &[], &body()).await;
    let account = fixture.seed.account("no such plan").await;
    let caller = Caller::new(&fixture.edge.url(), &account.agent("bot").virtual_key().await);
    fixture
        .call("a plan that nobody knows", &caller, &[], &body())
        .await;
    let (key_id, agent, caller) = {
        let agent = fixture.seed.account("free").await.agent("bot");
        let (key_id, key) = agent.virtual_key_with_id().await;
        (key_id, agent, Caller::new(&fixture.edge.url(), &key))
    };
    let rate = agent.account.keys.rate(&key_id);
    let _: String = fixture.redis.command(&["SET", &rate, "10", "PX", "60000"]);
    fixture.call("rate_limited", &caller, &[], &body()).await;
    agent.account.revoke(&key_id).await;
    fixture.call("a revoked key", &caller, &[], &body()).await;
}

async fn refusals(fixture: &mut Fixture) {
    let url = fixture.edge.url();
    for (title, key) in [
        ("no key", String::new()),
        ("a provider's key", "sk-abcdefghijklmnop".to_owned()),
        ("a key too short", "vk_live_abc".to_owned()),
        ("a key that nobody has", format!("vk_live_{}", "0a".repeat(32))),
    ] {
        fixture.call(title, &Caller::new(&url, &key), &[], &body()).await;
    }
    let (_, caller) = fixture.agent("enterprise", open_cap()).await;
    for (title, sent) in [
        ("an empty body", String::new()),
        ("half a body", "{".to_owned()),
        ("no object", "[]".to_owned()),
        ("no model", json!({ "messages": [] }).to_string()),
        ("a model that is no text", with("model", json!(7))),
        ("a model without a price", with("model", json!("no-such-model"))),
        ("no messages", json!({ "model": MODEL }).to_string()),
        ("messages that are no list", with("messages", json!("hello"))),
        ("a stream", with("stream", json!(true))),
        ("a stream that is no boolean", with("stream", json!("yes"))),
        ("a limit of no number", with("max_tokens", json!("many"))),
        ("a negative limit", with("max_tokens", json!(-1))),
        ("a limit of half a token", with("max_tokens", json!(1.5))),
        ("no answers", with("n", json!(0))),
        ("too many answers", with("n", json!(1_000_000))),
        (
            "a field twice",
            r#"{"model":"gpt-4o-mini","model":"gpt-4o","messages":[]}"#.to_owned(),
        ),
        ("web search", with("web_search_options", json!({}))),
        ("audio", with("modalities", json!(["text", "audio"]))),
        ("a service tier", with("service_tier", json!("priority"))),
        (
            "tools",
            with(
                "tools",
                json!([{ "type": "function", "function": { "name": "f" } }]),
            ),
        ),
        ("too long a body", with("user", json!("x".repeat(100_000)))),
    ] {
        fixture.call(title, &caller, &[], &sent).await;
    }
    for (title, headers) in [
        ("another type of content", ("content-type", "text/plain")),
        ("a compressed body", ("content-encoding", "gzip")),
        ("a run of control characters", ("x-service-run-id", "a\tb")),
        (
            "a run too long",
            (
                "x-service-run-id",
                "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr",
            ),
        ),
    ] {
        fixture.call(title, &caller, &[headers], &body()).await;
    }
}

async fn other_routes(fixture: &mut Fixture) {
    let (_, caller) = fixture.agent("startup", open_cap()).await;
    let nobody = Caller::new(&fixture.edge.url(), "");
    for (method, path) in [
        ("GET", "/v1/health"),
        ("HEAD", "/v1/health"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/gpt-4o-mini"),
        ("GET", "/v1/models/no-such-model"),
        ("GET", "/v1/chat/completions"),
        ("DELETE", "/v1/chat/completions"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/responses"),
        ("POST", "/v1/embeddings"),
        ("OPTIONS", "/v1/chat/completions"),
        ("GET", "/"),
        ("GET", "/v1/no/such/route"),
        ("GET", "/v1/openapi.json"),
    ] {
        for (title, caller) in [("no key", &nobody), ("a key", &caller)] {
            fixture
                .recording
                .call(title, caller, (method, path), &[], "")
                .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_edge_answers_as_before() {
    let mut fixture = Fixture::start(&[]).await;
    approvals(&mut fixture).await;
    denials(&mut fixture).await;
    refusals(&mut fixture).await;
    other_routes(&mut fixture).await;
    let Fixture { recording, edge, .. } = fixture;
    recording.compare_with("edge.txt", || edge.logs()).await;
}
