//! The fixture of every test: store, wire, provider, edge and one agent, and checks of their state.

pub use harness::PROVIDER_KEY;
use harness::{
    Answer, Edge, Installation, Nanos, RawClient, Redis, Reply, SeedAgent, Upstream, Wire, assert_fields,
    open_cap, until,
};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use store::script::Script;
use tokio::sync::Notify;

/// The built edge.
pub const PROXY: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
/// The store's deadline where a test waits for it. A busy machine meets it while the store is up.
pub const STORE_TIMEOUT_MS: u64 = 1500;
/// Longest wait for something that should happen at once, on a slow and busy machine.
pub const SOON: Duration = Duration::from_secs(20);
/// Estimate of [`body`]: 7 bytes of prompt text are 2 tokens of 150 nano-USD and their message 4, and 100
/// tokens of 600 follow.
pub const ESTIMATE: u64 = 6 * 150 + 100 * 600;
/// Cost of [`answer`]: 9 tokens of 150 nano-USD and 12 of 600.
pub const ACTUAL: u64 = 9 * 150 + 12 * 600;

/// A call whose estimate is [`ESTIMATE`].
pub fn body() -> Value {
    json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "hello" }], "max_tokens": 100 })
}

/// An answer that costs [`ACTUAL`].
pub fn answer() -> Answer {
    Answer::chat(9, 12)
}

/// Nano-USD as the money headers write them.
pub fn usd(nanos: u64) -> String {
    Nanos::new(nanos).expect("an amount").to_string()
}

/// The hash by which a script is executed.
pub fn sha(script: &Script) -> String {
    redis::Script::new(script.source()).get_hash().to_owned()
}

/// Settings of a fixture.
#[derive(Default)]
pub struct Setup {
    redis: Option<Redis>,
    wired: bool,
    clock_ahead: i64,
    before: Option<fn(&Redis)>,
    edge: Option<String>,
    env: Vec<(String, String)>,
}

pub struct Fixture {
    installation: Installation<Edge, (), Upstream>,
    wire: Option<Wire>,
    pub bot: SeedAgent,
    pub key: String,
    pub key_id: String,
}

impl Deref for Fixture {
    type Target = Installation<Edge, (), Upstream>;

    fn deref(&self) -> &Self::Target {
        &self.installation
    }
}

impl Setup {
    /// Takes this store in place of a new one.
    pub fn redis(mut self, redis: Redis) -> Self {
        self.redis = Some(redis);
        self
    }

    /// Puts a wire between edge and store.
    pub fn wired(mut self) -> Self {
        self.wired = true;
        self
    }

    /// Puts a wire between edge and store, and makes the store's clock appear ahead by `seconds` from the start. Does
    /// not wait until the edge is ready.
    pub fn clock_ahead(mut self, seconds: i64) -> Self {
        self.clock_ahead = seconds;
        self.before = Some(|_| ());
        self.wired()
    }

    /// Changes the store before the edge starts, and does not wait until the edge is ready.
    pub fn before_the_edge(mut self, change: fn(&Redis)) -> Self {
        self.before = Some(change);
        self
    }

    /// Runs this program in place of the built edge.
    pub fn edge(mut self, program: String) -> Self {
        self.edge = Some(program);
        self
    }

    /// Sets the edge's setting `TOLLGATE_{name}`.
    pub fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.env.push((format!("TOLLGATE_{name}"), value.to_string()));
        self
    }

    /// Lets the edge log everything that it can, its libraries included.
    pub fn log_everything(mut self) -> Self {
        self.env.push(("RUST_LOG".to_owned(), "trace".to_owned()));
        self
    }

    /// Starts everything; the agent is on the largest plan, with Cap on and no limit.
    pub async fn start(self) -> Fixture {
        let redis = self.redis.unwrap_or_else(Redis::start);
        let wire = self.wired.then(|| Wire::to_port(redis.port()));
        if let Some(wire) = &wire {
            wire.move_clock(self.clock_ahead);
        }
        let installation = Installation::on(redis).await;
        let bot = installation.seed.account("enterprise").await.agent("bot");
        let (key_id, key) = bot.ready(open_cap()).await;
        if let Some(change) = self.before {
            change(&installation.redis);
        }
        let program = self.edge.as_deref().unwrap_or(PROXY);
        let installation = installation.with_edge(program, |options| {
            let options = match &wire {
                Some(wire) => options.env("TOLLGATE_STORE__URL", wire.redis_url()),
                None => options,
            };
            let each = self.env.iter();
            let options = each.fold(options, |options, (name, value)| options.env(name, value));
            match self.before {
                Some(_) => options.until_alive(),
                None => options,
            }
        });
        Fixture {
            installation,
            wire,
            bot,
            key,
            key_id,
        }
    }
}

impl Fixture {
    /// A fixture with a wire whose edge has settled one call.
    pub async fn wired() -> Self {
        let fixture = Setup::default()
            .wired()
            .env("STORE__TIMEOUT_MS", STORE_TIMEOUT_MS)
            .start()
            .await;
        fixture.approved_call().await;
        fixture.at_rest().await;
        fixture
    }

    /// The wire between edge and store.
    pub fn wire(&self) -> &Wire {
        self.wire.as_ref().expect("a wired fixture")
    }

    /// Takes the store away: later commands do not arrive. [`Wire::heal`] brings it back.
    pub fn lose_store(&self) {
        self.wire().swallow_requests(true);
        self.wire().refuse(true);
        self.wire().cut();
    }

    pub async fn call(&self) -> Reply {
        self.edge.caller(&self.key).chat(body()).await
    }

    /// A raw connection to the edge.
    pub async fn raw(&self) -> RawClient {
        RawClient::connect(self.edge.addr()).await
    }

    /// From now on the provider answers each call when the gate is notified.
    pub fn gated(&self) -> Arc<Notify> {
        let gate = Arc::new(Notify::new());
        let waiting = gate.clone();
        self.upstream.set(move |_| answer().wait_for(&waiting));
        gate
    }

    /// A raw call with this body, which waits at the provider as request `number`.
    pub async fn waiting_call(&self, body: &[u8], number: usize) -> RawClient {
        let mut raw = self.raw().await;
        assert!(raw.send_chat(&self.key, "", body).await);
        self.upstream.wait_for(number, SOON).await;
        raw
    }

    /// A call that must be approved and cost [`ACTUAL`]; the first one also makes the store load the scripts.
    pub async fn approved_call(&self) {
        let reply = self.call().await;
        assert_eq!(reply.status, 200, "{reply:?}\n{}", self.edge.logs());
        let (estimate, actual) = (usd(ESTIMATE), usd(ACTUAL));
        assert_eq!(reply.header("x-service-decision"), Some("approved"));
        assert_eq!(reply.header("x-service-estimated-usd"), Some(estimate.as_str()));
        assert_eq!(reply.header("x-service-actual-usd"), Some(actual.as_str()));
    }

    /// A call that must be denied with 503; nothing may reach the provider.
    pub async fn unavailable_call(&self) {
        let before = self.upstream.arrived();
        let reply = self.call().await;
        unavailable(&reply);
        assert_eq!(self.upstream.arrived(), before, "nothing is forwarded");
    }

    /// Calls until one is approved: the edge has recovered by itself.
    pub async fn recovered(&self) {
        until("an approved call", async || self.call().await.status == 200).await;
    }

    /// Nano-USD charged to the agent by day and by month, and to its account, over all periods.
    pub fn charged(&self) -> [u64; 3] {
        self.bot.charged(&self.redis)
    }

    /// Open holds of the agent's bucket.
    pub fn open_holds(&self) -> u64 {
        self.redis
            .command(&["ZCARD", &self.bot.account.keys.bucket().due()])
    }

    /// Waits until nothing is under way and the counters stand at exactly `nanos`, without an open hold.
    pub async fn settled_at(&self, nanos: u64) {
        self.at_rest().await;
        let (charged, holds) = (self.charged(), self.open_holds());
        assert_eq!((charged, holds), ([nanos; 3], 0), "{}", self.edge.logs());
    }

    /// Waits until nothing is under way; each approved call was sent once and cost [`ACTUAL`].
    pub async fn every_approved_call_is_settled(&self) {
        self.at_rest().await;
        let approved = self.metric("tollgate_proxy_approved_total");
        self.settled_at(approved * ACTUAL).await;
        assert_eq!(self.upstream.arrived() as u64, approved);
    }

    /// Waits until no call is in flight and nothing waits for the store.
    pub async fn at_rest(&self) {
        self.edge.at_rest().await;
    }

    /// A metric of the edge, summed over its labels; a name with labels means that line.
    pub fn metric(&self, name: &str) -> u64 {
        metric(&self.edge, name)
    }

    /// Number of calls of the key in its current minute.
    pub fn rate(&self) -> u64 {
        let key = self.bot.account.keys.rate(&self.key_id);
        let count: Option<u64> = self.redis.command(&["GET", &key]);
        count.unwrap_or(0)
    }
}

/// Asserts the answer that means: nothing was decided, nothing was forwarded, try again.
#[track_caller]
pub fn unavailable(reply: &Reply) {
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(reply.header("x-service-decision"), Some("denied"));
    assert_eq!(reply.header("x-service-reason"), Some("service_unavailable"));
    assert_eq!(reply.header("x-should-retry"), None, "nothing was charged");
    let body = reply.json();
    assert_fields!(body, { "approved": false, "reason": "service_unavailable" });
    assert_eq!(body["error"]["code"], "service_unavailable");
    assert!(
        body["id"].as_str().is_some_and(|id| id.starts_with("deny_")),
        "{body}"
    );
}

/// A metric of an edge, summed over its labels; a name with labels means that line.
pub fn metric(edge: &Edge, name: &str) -> u64 {
    edge.metric_sum(name).unwrap_or(u64::MAX)
}
