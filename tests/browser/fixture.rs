//! The servers of one journey: a store, a provider, the edge, and an admin server that can be stopped and started.

use crate::provider;
use harness::{Admin, AdminOptions, Cli, Edge, EdgeOptions, Redis, Upstream, free_port};
use parking_lot::Mutex;

const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
const EDGE: &str = env!("CARGO_BIN_EXE_tollgate-proxy");

/// Servers and accounts of a journey.
pub struct Fixture {
    // The servers before the store that they use: fields are dropped in this order.
    admin: Mutex<Option<Admin>>,
    pub edge: Edge,
    pub upstream: Upstream,
    pub redis: Redis,
    options: AdminOptions,
    /// `http://127.0.0.1:port` of the admin server, whether it runs or not.
    pub base: String,
}

impl Fixture {
    /// Starts everything, with all switches of the edge on. Each call costs the provider 9 + 12 tokens.
    pub fn start() -> Self {
        let redis = Redis::start();
        let cli = Cli::new(ADMIN, redis.url());
        let _ = cli.json(&["store", "init"]);
        let upstream = Upstream::start(provider::answer);
        let edge = EdgeOptions::new(EDGE, redis.url(), upstream.base_url())
            .env("TOLLGATE_PROXY__STREAMING", "true")
            .env("TOLLGATE_PROXY__STREAM_EXTEND", "true")
            .env("TOLLGATE_PROXY__RESPONSES", "true")
            .env("TOLLGATE_PROXY__EMBEDDINGS", "true");
        let edge = Edge::start(edge);
        let address = format!("127.0.0.1:{}", free_port());
        let base = format!("http://{address}");
        let options = AdminOptions::new(ADMIN, redis.url())
            .env("TOLLGATE_ADMIN__LISTEN", address)
            .env("TOLLGATE_ADMIN__PUBLIC_URL", &base)
            .env("TOLLGATE_PROXY__PUBLIC_URL", edge.url())
            .env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true")
            .env("TOLLGATE_WEBHOOKS__RETRY_DELAYS_MS", "100,200")
            .env("TOLLGATE_WEBHOOKS__MAX_ATTEMPTS", "3");
        Self {
            admin: Mutex::new(Some(Admin::start(options.clone()))),
            edge,
            upstream,
            redis,
            options,
            base,
        }
    }

    /// The operator's command line.
    pub fn cli(&self) -> Cli {
        Cli::new(ADMIN, self.redis.url()).env("TOLLGATE_ADMIN__PUBLIC_URL", &self.base)
    }

    /// Kills the admin server.
    pub fn stop_admin(&self) {
        self.admin.lock().take();
    }

    /// Starts the admin server again, at the same address.
    pub fn start_admin(&self) {
        let mut admin = self.admin.lock();
        *admin = Some(Admin::start(self.options.clone()));
    }
}
