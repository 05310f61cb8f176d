//! A cluster with replicas, edges on it, and accounts whose node is known.

use harness::{
    Admin, AdminOptions, Answer, CapPolicy, Cli, Edge, EdgeOptions, Nanos, RedisCluster, Seed, SeedAccount,
    SeedAgent, Store, Upstream, eventually,
};
use serde_json::{Value, json};
use std::time::Duration;

pub const PROXY: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
pub const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// `store.timeout_ms`: short, since masters hang and die in these tests.
const STORE_TIMEOUT_MS: &str = "1000";
/// `store.timeout_ms` where a test holds back requests to the store.
pub const PATIENCE_MS: &str = "90000";
/// Prices by which the estimate of a call is its `max_tokens`.
const PRICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/edge/prices.toml");
/// Plan of the residents. No test reaches its rate limit.
const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/plans.toml");
/// Longest wait for something that happens soon, on a slow and busy machine.
pub const SOON: Duration = Duration::from_secs(60);
/// Cost of each call. The provider reports no usage, so the estimate stays charged.
pub const COST: u64 = 1_000;
/// Masters of the cluster, each with a replica.
pub const MASTERS: usize = 3;
/// Maximum number of accounts made until one is on the wanted node.
const TRIES: usize = 200;

pub struct Fixture {
    pub cluster: RedisCluster,
    pub store: Store,
    pub seed: Seed,
    pub upstream: Upstream,
    pub edges: Vec<Edge>,
}

/// An agent with a key, alone in its account.
#[derive(Clone)]
pub struct Resident {
    pub agent: SeedAgent,
    pub key: String,
}

/// A call that costs [`COST`], identified by `name`.
pub fn call(name: &str) -> Value {
    json!({ "model": "nano", "max_tokens": COST, "messages": [{ "role": "user", "content": name }] })
}

/// Cap with this daily limit.
pub fn cap(daily: Option<u64>) -> CapPolicy {
    CapPolicy {
        enabled: true,
        daily: daily.and_then(Nanos::new),
        ..CapPolicy::default()
    }
}

impl Fixture {
    /// A cluster of masters with replicas, and this many edges.
    pub async fn start(edges: usize) -> Self {
        Self::on(RedisCluster::start_replicated(MASTERS), edges).await
    }

    pub async fn on(cluster: RedisCluster, edges: usize) -> Self {
        let store = Store::open(&cluster.url(), Duration::from_secs(5)).expect("the cluster");
        let seed = Seed::new(&store).await;
        let upstream = Upstream::start(|_| Answer::chat_with_usage(Value::Null));
        let mut fixture = Self {
            cluster,
            store,
            seed,
            upstream,
            edges: Vec::new(),
        };
        for _ in 0..edges {
            fixture.edges.push(fixture.edge());
        }
        fixture
    }

    pub fn edge(&self) -> Edge {
        self.edge_with(STORE_TIMEOUT_MS)
    }

    /// An edge that waits long for the store's replies.
    pub fn patient_edge(&self) -> Edge {
        self.edge_with(PATIENCE_MS)
    }

    fn edge_with(&self, timeout_ms: &str) -> Edge {
        let options = EdgeOptions::new(PROXY, self.cluster.url(), self.upstream.base_url());
        Edge::start(
            options
                .env("TOLLGATE_STORE__TIMEOUT_MS", timeout_ms)
                .env("TOLLGATE_PRICES__FILE", PRICES)
                .env("TOLLGATE_PLANS__FILE", PLANS),
        )
    }

    /// An admin server with this `store.durability`.
    pub fn admin(&self, durability: &str) -> Admin {
        Admin::start(self.admin_options(durability))
    }

    /// An admin server that waits long for the store's replies.
    pub fn patient_admin(&self, durability: &str) -> Admin {
        Admin::start(
            self.admin_options(durability)
                .env("TOLLGATE_STORE__TIMEOUT_MS", PATIENCE_MS),
        )
    }

    /// An admin server that need not become ready: part of its store may be down.
    pub fn admin_at_once(&self, durability: &str) -> Admin {
        Admin::start(self.admin_options(durability).until_alive())
    }

    /// The operator's command line with this `store.durability`.
    pub fn operator(&self, durability: &str) -> Cli {
        Cli::new(ADMIN, self.cluster.url())
            .env("TOLLGATE_STORE__DURABILITY", durability)
            .env("TOLLGATE_STORE__DURABILITY_TIMEOUT_MS", "700")
    }

    fn admin_options(&self, durability: &str) -> AdminOptions {
        AdminOptions::new(ADMIN, self.cluster.url())
            .env("TOLLGATE_STORE__TIMEOUT_MS", STORE_TIMEOUT_MS)
            .env("TOLLGATE_STORE__DURABILITY", durability)
            .env("TOLLGATE_STORE__DURABILITY_TIMEOUT_MS", "700")
    }

    /// Index of the master that holds the ledger's own record.
    pub fn home(&self) -> usize {
        let home = self.cluster.holder_known_to(0, store::keys::STORE);
        home.expect("a holder of the ledger's record")
    }

    /// A new resident on the master at `node`.
    pub async fn resident_on(&self, node: usize, cap: CapPolicy) -> Resident {
        let account = self.account_on(node).await;
        let agent = account.agent("bot");
        let (_, key) = agent.ready(cap).await;
        agent.policy_record().await;
        Resident { agent, key }
    }

    /// Waits until the test's own store handle has found the server of `key`: the first command after a master died may
    /// fail with its connection.
    pub async fn found_again(&self, key: &str) {
        eventually("a reply of the store", SOON, async || {
            let found = self.store.command::<u64>(redis::cmd("EXISTS").arg(key)).await;
            found.ok().map(drop)
        })
        .await;
    }

    /// A new account on the master at `node`.
    pub async fn account_on(&self, node: usize) -> SeedAccount {
        for _ in 0..TRIES {
            let account = self.seed.account("enterprise").await;
            if self.cluster.holder_known_to(0, &account.keys.record()) == Some(node) {
                return account;
            }
        }
        panic!("no account on node {node}");
    }
}

/// Accepts the account's present state, as the operator does.
pub fn accept(fixture: &Fixture, account: &SeedAccount) {
    let cli = Cli::new(ADMIN, fixture.cluster.url());
    let accepted = cli.json(&["store", "accept", "--account", &account.id]);
    assert_eq!(accepted["accepted"], 1, "{accepted}");
}
