//! Fixture: a store, a provider, an edge and an admin server.

use crate::scrape::Scrape;
use harness::{
    Admin, AdminOptions, Answer, Caller, CapPolicy, Daemon, Edge, EdgeOptions, Nanos, Redis, Seed, SeedAgent,
    Upstream, chat_body,
};
use serde_json::Value;
use std::time::Duration;

pub const EDGE: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
pub const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Longest wait for something that happens at once on an idle machine.
pub const SOON: Duration = Duration::from_secs(30);
pub const PROVIDER_KEY: &str = "sk-test-provider-key";
/// Text of the callers' prompts.
pub const PROMPT: &str = "a-word-that-only-the-prompt-has";
pub const MODEL: &str = "gpt-4o-mini";

/// The whole system.
pub struct Stage {
    pub redis: Redis,
    pub seed: Seed,
    pub upstream: Upstream,
    pub edge: Edge,
    pub admin: Admin,
}

/// An agent that may call.
pub struct Actor {
    pub agent: SeedAgent,
    pub key: String,
    pub caller: Caller,
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(|options| options, |options| options).await
    }

    pub async fn with(
        edge: impl FnOnce(EdgeOptions) -> EdgeOptions,
        admin: impl FnOnce(AdminOptions) -> AdminOptions,
    ) -> Self {
        let redis = Redis::start();
        let upstream = Upstream::start(|_| Answer::chat(9, 12));
        let seed = Seed::new(&redis.store()).await;
        let options = EdgeOptions::new(EDGE, redis.url(), upstream.base_url());
        Self {
            edge: Edge::start(edge(options)),
            admin: Admin::start(admin(AdminOptions::new(ADMIN, redis.url()))),
            redis,
            seed,
            upstream,
        }
    }

    /// An agent that may call, within a cap for the day if one is given.
    pub async fn actor(&self, daily: Option<u64>) -> Actor {
        let cap = CapPolicy {
            enabled: true,
            daily: daily.and_then(Nanos::new),
            ..CapPolicy::default()
        };
        let (agent, key) = self.seed.ready_agent("enterprise", cap).await;
        let caller = self.edge.caller(&key);
        Actor { agent, key, caller }
    }

    /// Causes metrics and log lines of every kind: approved, denied and refused calls, and management requests.
    pub async fn traffic(&self) -> Actor {
        let rich = self.actor(None).await;
        let poor = self.actor(Some(1)).await;
        for _ in 0..3 {
            assert_eq!(rich.caller.chat(body()).await.status, 200);
        }
        assert_eq!(poor.caller.chat(body()).await.status, 402);
        assert_eq!(rich.caller.chat("{").await.status, 400);
        assert_eq!(self.edge.caller("").chat(body()).await.status, 401);
        assert_eq!(rich.caller.get("/v1/models").await.status, 200);
        assert_eq!(rich.caller.get("/nowhere").await.status, 404);
        let nobody = self.admin.caller("");
        assert_eq!(nobody.get("/v1/agents").await.status, 401);
        assert_eq!(nobody.get("/no/such/path").await.status, 404);
        rich
    }

    /// Both programs' metrics.
    pub fn scrapes(&self) -> [Scrape; 2] {
        [scrape(&self.edge), scrape(&self.admin)]
    }
}

/// Current metrics of the program.
#[track_caller]
pub fn scrape(daemon: &Daemon) -> Scrape {
    let (status, text) = daemon.ops("/metrics").expect("metrics");
    assert_eq!(status, 200, "{text}");
    Scrape::parse(&text)
}

/// The body of a call.
pub fn body() -> Value {
    chat_body(MODEL, PROMPT)
}
