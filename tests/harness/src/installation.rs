//! An installation: a store and the servers on it, and an agent that calls through its edge.

use crate::client::Caller;
use crate::daemon::{Admin, Edge};
use crate::options::{AdminOptions, EdgeOptions};
use crate::redis_server::Redis;
use crate::seed::{Seed, SeedAgent};
use crate::upstream::{Answer, Upstream};
use domain::cap::CapPolicy;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::sync::Mutex;

/// Longest wait for the settlement of a call that has ended.
const SETTLED: Duration = Duration::from_secs(60);

/// An initialised store and the servers on it. It starts with none; each `with_…` starts one. The servers end before
/// the store that they use, since fields are dropped in this order.
#[derive(Debug)]
pub struct Installation<E = (), A = (), U = ()> {
    /// The edge, if one was started.
    pub edge: E,
    /// The admin server, if one was started.
    pub admin: A,
    /// The edge's provider. Its answers report the usage 9 + 12 until they are set.
    pub upstream: U,
    /// Writes into the store.
    pub seed: Seed,
    /// The test's own handle of the store.
    pub store: Store,
    /// The store's server.
    pub redis: Arc<Redis>,
}

/// An agent that may call, alone in its account unless made otherwise.
#[derive(Debug, Clone)]
pub struct Actor {
    /// Its names and keys in the store.
    pub agent: SeedAgent,
    /// Id of its virtual key.
    pub key_id: String,
    /// The virtual key.
    pub key: String,
    /// Sends calls with that key.
    pub caller: Caller,
}

impl Installation {
    /// An installation without servers on the store of `redis`, which is initialised if it is empty.
    pub async fn on(redis: impl Into<Arc<Redis>>) -> Self {
        // Two tests must not initialise a store that they share at the same moment.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
        let redis = redis.into();
        let store = redis.store();
        let turn = ONE_AT_A_TIME.lock().await;
        let seed = Seed::new(&store).await;
        drop(turn);
        Self {
            edge: (),
            admin: (),
            upstream: (),
            seed,
            store,
            redis,
        }
    }
}

impl<A> Installation<(), A> {
    /// Starts a provider, and an edge from `binary` with these changes of its settings.
    pub fn with_edge(
        self,
        binary: &str,
        change: impl FnOnce(EdgeOptions) -> EdgeOptions,
    ) -> Installation<Edge, A, Upstream> {
        let upstream = Upstream::start(|_| Answer::chat(9, 12));
        let options = EdgeOptions::new(binary, self.redis.url(), upstream.base_url());
        Installation {
            edge: Edge::start(change(options)),
            admin: self.admin,
            upstream,
            seed: self.seed,
            store: self.store,
            redis: self.redis,
        }
    }
}

impl<E, U> Installation<E, (), U> {
    /// Starts an admin server from `binary` with these changes of its settings.
    pub fn with_admin(
        self,
        binary: &str,
        change: impl FnOnce(AdminOptions) -> AdminOptions,
    ) -> Installation<E, Admin, U> {
        let options = AdminOptions::new(binary, self.redis.url());
        Installation {
            edge: self.edge,
            admin: Admin::start(change(options)),
            upstream: self.upstream,
            seed: self.seed,
            store: self.store,
            redis: self.redis,
        }
    }
}

impl<A> Installation<Edge, A, Upstream> {
    /// An agent in a new account on `plan`, with this policy and all that a call needs.
    pub async fn actor(&self, plan: &str, cap: CapPolicy) -> Actor {
        let agent = self.seed.account(plan).await.agent("bot");
        self.edge.equip(agent, cap).await
    }
}

impl Actor {
    /// Waits until nothing of the agent is held any more. Returns its charges of today in nano-USD.
    pub async fn settled(&self) -> u64 {
        self.agent.settled_within(SETTLED).await
    }
}

impl Edge {
    /// Gives an agent this policy and all that a call through this edge needs.
    pub async fn equip(&self, agent: SeedAgent, cap: CapPolicy) -> Actor {
        let (key_id, key) = agent.ready(cap).await;
        agent.policy_record().await;
        let caller = self.caller(&key);
        Actor {
            agent,
            key_id,
            key,
            caller,
        }
    }
}
