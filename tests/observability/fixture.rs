//! Fixture: a store, a provider, an edge and an admin server.

use crate::scrape::Scrape;
pub use harness::PROVIDER_KEY;
use harness::{
    Actor, Admin, AdminOptions, Daemon, Edge, EdgeOptions, Installation, Redis, Upstream, chat_body,
    daily_cap, open_cap,
};
use serde_json::Value;
use std::ops::Deref;
use std::time::Duration;

pub const EDGE: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
pub const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Longest wait for something that happens at once on an idle machine.
pub const SOON: Duration = Duration::from_secs(30);
/// Text of the callers' prompts.
pub const PROMPT: &str = "a-word-that-only-the-prompt-has";
pub const MODEL: &str = "gpt-4o-mini";

/// The whole system.
pub struct Fixture(Installation<Edge, Admin, Upstream>);

impl Deref for Fixture {
    type Target = Installation<Edge, Admin, Upstream>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Fixture {
    pub async fn new() -> Self {
        Self::with(|options| options, |options| options).await
    }

    pub async fn with(
        edge: impl FnOnce(EdgeOptions) -> EdgeOptions,
        admin: impl FnOnce(AdminOptions) -> AdminOptions,
    ) -> Self {
        let installation = Installation::on(Redis::start()).await;
        Self(installation.with_edge(EDGE, edge).with_admin(ADMIN, admin))
    }

    /// An agent without limits.
    pub async fn rich(&self) -> Actor {
        self.actor("enterprise", open_cap()).await
    }

    /// An agent that cannot pay a call.
    pub async fn poor(&self) -> Actor {
        self.actor("enterprise", daily_cap(1)).await
    }

    /// Causes metrics and log lines of every kind: approved, denied and refused calls, and management requests.
    pub async fn traffic(&self) -> Actor {
        let rich = self.rich().await;
        let poor = self.poor().await;
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
