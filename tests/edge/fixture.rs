//! Fixture: a store, a provider with scripted answers, an edge between them, and agents that call.

use domain::entry::Entry;
pub use harness::{Actor, PROVIDER_KEY, open_cap};
use harness::{
    Answer, CapPolicy, Edge, EdgeOptions, Installation, Mode, Nanos, Redis, Reply, SeedAgent, Upstream,
    chat_body,
};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

pub const EDGE: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
/// The price table of these tests.
pub const PRICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/edge/prices.toml");
/// Longest wait for something that happens at once on an idle machine.
pub const SOON: Duration = Duration::from_secs(20);

/// Store, provider and edge.
pub struct Fixture(Installation<Edge, (), Upstream>);

impl Deref for Fixture {
    type Target = Installation<Edge, (), Upstream>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Fixture {
    /// The last entry of the audit log of an agent's account.
    pub async fn last_entry(&self, of: &Actor) -> Entry {
        of.agent.account.audit(Mode::Live).await.pop().expect("an entry")
    }

    /// A fixture on the store that the tests share. The provider answers with `usage` 9 + 12.
    pub async fn new() -> Self {
        Self::with(|options| options).await
    }

    /// A fixture on the shared store, with other settings.
    pub async fn with(change: impl FnOnce(EdgeOptions) -> EdgeOptions) -> Self {
        Self::on(Redis::shared(), change).await
    }

    /// A fixture on a store of its own.
    pub async fn alone() -> Self {
        Self::on(Arc::new(Redis::start()), |options| options).await
    }

    /// A fixture on this store, with other settings.
    pub async fn on(redis: Arc<Redis>, change: impl FnOnce(EdgeOptions) -> EdgeOptions) -> Self {
        let installation = Installation::on(redis).await;
        Self(installation.with_edge(EDGE, |options| change(priced(options))))
    }

    /// Another edge on the same store and provider.
    pub fn another_edge(&self) -> Edge {
        Edge::start(options(&self.redis, &self.upstream.base_url()))
    }

    /// The provider answers without `usage` from now on, so that every estimate stays charged.
    pub fn estimates_stay(&self) {
        self.upstream.set(|_| Answer::chat_with_usage(Value::Null));
    }

    /// Sets the account's tracked USD of this month.
    pub fn set_tracked(&self, agent: &SeedAgent, nanos: u64) {
        self.set_of_month(agent, 't', nanos);
    }

    /// Sets how many of the plan's agents are in use this month.
    pub fn set_slots(&self, agent: &SeedAgent, count: u64) {
        self.set_of_month(agent, 'n', count);
    }

    fn set_of_month(&self, agent: &SeedAgent, letter: char, value: u64) {
        let (record, month) = (agent.account.keys.record(), self.redis.period().month);
        let field = format!("{letter}{month}");
        let _: u64 = self.redis.command(&["HSET", &record, &field, &value.to_string()]);
    }
}

/// The settings of an edge on `redis` and a provider.
pub fn options(redis: &Redis, upstream_base_url: &str) -> EdgeOptions {
    priced(EdgeOptions::new(EDGE, redis.url(), upstream_base_url))
}

fn priced(options: EdgeOptions) -> EdgeOptions {
    options.env("TOLLGATE_PRICES__FILE", PRICES)
}

/// Cap with these limits of run, day and month in nanos.
pub fn cap(run: Option<u64>, day: Option<u64>, month: Option<u64>) -> CapPolicy {
    CapPolicy {
        enabled: true,
        per_run: run.and_then(Nanos::new),
        daily: day.and_then(Nanos::new),
        monthly: month.and_then(Nanos::new),
    }
}

/// A call whose estimate is this many nanos.
pub fn estimated_body(estimate_nanos: u64) -> Value {
    json!({
        "model": "nano", "max_tokens": estimate_nanos,
        "messages": [{ "role": "user", "content": "hello" }],
    })
}

/// Eight bytes: two tokens. A message around them counts four more, a content part one (decision D68).
pub const TWO_TOKENS: &str = "12345678";

/// A call of `plain` with two tokens of prompt and ten of completion, changed by `more`.
pub fn plain_call(more: &Value) -> Value {
    let mut body = chat_body("plain", TWO_TOKENS);
    body["max_tokens"] = 10.into();
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

/// An amount in a header: a plain decimal, exact to the nano (decision D61).
#[track_caller]
pub fn nanos_of(text: &str) -> u64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    assert!(
        !whole.is_empty() && digits(whole) && digits(fraction) && fraction.len() <= 9,
        "{text}"
    );
    assert!(whole == "0" || !whole.starts_with('0'), "{text}");
    format!("{whole}{fraction:0<9}")
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Estimate and actual cost in the headers of an approved answer.
#[track_caller]
pub fn amounts(reply: &Reply) -> (u64, Option<u64>) {
    let estimate = reply.header("x-service-estimated-usd").expect("an estimate");
    (
        nanos_of(estimate),
        reply.header("x-service-actual-usd").map(nanos_of),
    )
}
