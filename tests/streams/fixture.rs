//! Fixture: a store, a provider with scripted streams, an edge between them with everything switched on.

pub use harness::{Actor, daily_cap as daily, open_cap};
use harness::{
    Answer, Cli, CliOutput, Edge, EdgeOptions, EventStream, Feed, Installation, Redis, Script, SeedAgent,
    Upstream, eventually, until,
};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub const EDGE: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
/// The operator's program.
pub const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// A price table with round figures: a token of `nano`'s answer is a nano-USD, and its prompt is free.
const PRICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/edge/prices.toml");
/// Longest wait for something that happens at once on an idle machine.
pub const SOON: Duration = Duration::from_secs(20);
/// Longest wait for what takes a busy machine minutes: many hundreds of streams.
pub const LONG: Duration = Duration::from_secs(300);
/// Estimate of a call of `nano` without a limit, in nano-USD: the tokens that it holds.
pub const HELD: u64 = 1024;

/// Store, provider and edge.
pub struct Fixture(Installation<Edge, (), Upstream>);

impl Deref for Fixture {
    type Target = Installation<Edge, (), Upstream>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Result of `ledger check`.
#[derive(Debug)]
pub struct Checked {
    code: Option<i32>,
    document: Value,
}

/// The settings of an edge with all switches on.
pub fn options(redis: &Redis, upstream: &Upstream) -> EdgeOptions {
    switched_on(EdgeOptions::new(EDGE, redis.url(), upstream.base_url()))
}

fn switched_on(options: EdgeOptions) -> EdgeOptions {
    options
        .env("TOLLGATE_PRICES__FILE", PRICES)
        .env("TOLLGATE_PROXY__STREAMING", "true")
        .env("TOLLGATE_PROXY__RESPONSES", "true")
        .env("TOLLGATE_PROXY__EMBEDDINGS", "true")
}

impl Fixture {
    pub async fn new() -> Self {
        Self::with(|options| options).await
    }

    /// Starts with other settings. The provider streams two deltas of four bytes and the usage 9 + 12.
    pub async fn with(change: impl FnOnce(EdgeOptions) -> EdgeOptions) -> Self {
        Self::on(Redis::start(), change).await
    }

    /// Starts on this store.
    pub async fn on(redis: Redis, change: impl FnOnce(EdgeOptions) -> EdgeOptions) -> Self {
        let installation = Installation::on(redis).await;
        let fixture = Self(installation.with_edge(EDGE, |options| change(switched_on(options))));
        fixture.provider_streams(Script::chat(&["Hell", "o wo"], &usage(9, 12)));
        fixture
    }

    /// Starts with a store that a kill does not empty, and that is awaited for two seconds.
    pub async fn durable(change: impl FnOnce(EdgeOptions) -> EdgeOptions) -> Self {
        let change = |options: EdgeOptions| change(options.env("TOLLGATE_STORE__TIMEOUT_MS", "2000"));
        Self::on(Redis::start_durable(), change).await
    }

    /// Takes the store away: killed, so that it refuses connections, or frozen, so that it answers nothing.
    pub fn lose_store(&self, is_killed: bool) {
        match is_killed {
            true => self.redis.kill9(),
            false => self.redis.pause(),
        }
    }

    /// Brings the store back, and asserts that the call `id` is settled once, at `nanos`.
    pub async fn settles_with_the_store(&self, is_killed: bool, actor: &Actor, id: &str, nanos: u64) {
        match is_killed {
            true => self.redis.restart(),
            false => self.redis.resume(),
        }
        // A kill also breaks the test's own connection.
        eventually("a connection to the store", SOON, async || {
            let ping: Option<String> = self.store.command(&redis::cmd("PING")).await.ok();
            ping
        })
        .await;
        assert_eq!(actor.settled().await, nanos, "killed: {is_killed}");
        until("an empty retry queue", async || {
            self.edge.metric_sum("tollgate_proxy_pending") == Some(0)
        })
        .await;
        let lines = self.audit_lines(&actor.agent, id);
        assert_eq!(lines.len(), 1, "settled once: {lines:?}");
        self.ledger_check().await.is_in_order();
    }

    /// The entries of the audit log about the call `id`.
    pub fn audit_lines(&self, agent: &SeedAgent, id: &str) -> Vec<String> {
        let log = agent.account.keys.live().audit();
        let mut lines: Vec<String> = self.redis.command(&["LRANGE", &log, "0", "-1"]);
        lines.retain(|line| line.contains(id));
        lines
    }

    pub fn provider_streams(&self, script: Script) {
        let answer = Answer::stream(script);
        self.upstream.set(move |_| answer.clone());
    }

    /// Runs the operator's program.
    pub async fn admin(&self, args: &'static [&'static str]) -> CliOutput {
        let cli = Cli::new(ADMIN, self.redis.url());
        let run = tokio::task::spawn_blocking(move || cli.run(args));
        run.await.expect("the program ends")
    }

    pub async fn ledger_check(&self) -> Checked {
        let output = self.admin(&["ledger", "check", "--json"]).await;
        let document = serde_json::from_str(&output.stdout);
        Checked {
            code: output.code,
            document: document.unwrap_or_else(|error| panic!("{error}: {output:?}")),
        }
    }

    /// A metric of the edge, summed over its labels; a name with labels means that line.
    pub async fn metric(&self, name: &str) -> u64 {
        eventually("metrics", SOON, async || self.edge.metric_sum(name)).await
    }

    /// An agent without limits. The provider's streams send what the feed is given.
    pub async fn fed_actor(&self) -> (Actor, Feed) {
        let feed = Feed::new();
        self.provider_streams(Script::new().feed(&feed));
        (self.actor("enterprise", open_cap()).await, feed)
    }

    /// Opens a stream of such an agent.
    pub async fn open_fed(&self) -> (Actor, Feed, EventStream) {
        let (actor, feed) = self.fed_actor().await;
        let stream = self.open(&actor, json!({})).await;
        (actor, feed, stream)
    }

    /// Opens a stream of `nano`, and reads its head.
    pub async fn open(&self, actor: &Actor, more: Value) -> EventStream {
        EventStream::open(
            self.edge.addr(),
            "/v1/chat/completions",
            &actor.key,
            "",
            body(more),
        )
        .await
    }

    /// Opens a stream of `nano` in the Responses API, and reads its head.
    pub async fn open_response(&self, actor: &Actor) -> EventStream {
        let sent = json!({ "model": "nano", "input": "hello", "stream": true });
        EventStream::open(self.edge.addr(), "/v1/responses", &actor.key, "", sent).await
    }
}

impl Checked {
    /// Asserts that the check is conclusive and finds no violation. No money may move meanwhile.
    #[track_caller]
    pub fn is_in_order(&self) {
        assert_eq!(
            (self.code, &self.document["ok"]),
            (Some(0), &json!(true)),
            "{self:?}"
        );
    }

    /// Asserts that the check finds no violation. While money moves, it may be inconclusive.
    #[track_caller]
    pub fn finds_nothing_wrong(&self) {
        assert!(matches!(self.code, Some(0 | 3)), "{self:?}");
        assert_eq!(self.document["violations"], json!([]), "{self:?}");
        assert_eq!(self.document["more"], 0, "{self:?}");
    }
}

/// A streamed call of `nano`, with these additional fields.
pub fn body(more: Value) -> Value {
    let mut body = json!({
        "model": "nano", "stream": true, "messages": [{ "role": "user", "content": "hello" }],
    });
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

pub fn usage(input: u64, output: u64) -> Value {
    json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output })
}

pub fn chunk(text: &str) -> String {
    let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    format!("data: {chunk}\n\n")
}

/// The usage frame of a chat-completions stream with the usage 9 + `output`.
pub fn usage_frame(output: u64) -> String {
    format!(
        "data: {}\n\n",
        json!({ "choices": [], "usage": usage(9, output) })
    )
}

/// Sends the end of a stream: the usage 9 + `output`, and `[DONE]`.
pub fn finish(feed: &Feed, output: u64) {
    feed.send(usage_frame(output));
    feed.send("data: [DONE]\n\n");
    feed.end();
}

/// An event with text of a response.
pub fn response_delta(text: &str) -> String {
    let kind = "response.output_text.delta";
    let data = json!({ "type": kind, "output_index": 0, "content_index": 0, "delta": text });
    format!("event: {kind}\ndata: {data}\n\n")
}

/// Sends the end of a response: its last event, with the usage 9 + `output`.
pub fn finish_response(feed: &Feed, output: u64) {
    let usage = json!({ "input_tokens": 9, "output_tokens": output, "total_tokens": 9 + output });
    let response = json!({ "status": "completed", "output": [], "usage": usage });
    let kind = "response.completed";
    let data = json!({ "type": kind, "response": response });
    feed.send(format!("event: {kind}\ndata: {data}\n\n"));
    feed.end();
}

/// Asserts that a response ended with `error` and `response.failed`, in this order and both with this code.
#[track_caller]
pub fn failed_with(body: &str, code: &str) {
    let events: Vec<(&str, Value)> = body
        .split_terminator("\n\n")
        .filter_map(|event| event.strip_prefix("event: ")?.split_once("\ndata: "))
        .map(|(name, data)| (name, serde_json::from_str(data).expect("JSON")))
        .collect();
    let [.., ("error", error), ("response.failed", failed)] = &events[..] else {
        panic!("{body}");
    };
    assert_eq!(error["error"]["code"], code, "{body}");
    assert_eq!(failed["response"]["error"]["code"], code, "{body}");
    assert_eq!(failed["response"]["status"], "failed", "{body}");
}

/// Keeps the gate open until the task is aborted.
pub fn open_gate(gate: &Arc<Notify>) -> JoinHandle<()> {
    let gate = Arc::clone(gate);
    tokio::spawn(async move {
        loop {
            gate.notify_waiters();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
}
