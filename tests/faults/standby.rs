//! A single server with a standby: the operator makes the standby take over, which never received the last changes that
//! the first server acknowledged. Running servers do not forget what they knew: the accounts are refused, blocked
//! addresses stay blocked (decision D47).

use crate::fixture::{PROXY, answer, body};
use harness::{
    Admin, AdminOptions, Caller, Cli, Edge, EdgeOptions, Mode, Redis, Seed, SeedAgent, assert_fields,
    open_cap,
};
use harness::{Upstream, Wire, until};
use serde_json::json;

const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// The blocked range, and a client in it. A trusted proxy names the client.
const BLOCKED: (&str, &str) = ("203.0.113.0/24", "203.0.113.7");

/// A client that is not in it.
const ELSEWHERE: &str = "198.51.100.7";

/// An agent that may call.
struct Bot {
    agent: SeedAgent,
    key_id: String,
    key: String,
    api_key: String,
}

impl Bot {
    async fn new(seed: &Seed) -> Self {
        let agent = seed.account("builder").await.agent("bot");
        let (key_id, key) = agent.ready(open_cap()).await;
        let api_key = agent.account.api_key(Mode::Live).await;
        Self {
            agent,
            key_id,
            key,
            api_key,
        }
    }

    async fn call(&self, edge: &Edge) -> u16 {
        from(ELSEWHERE, &edge.caller(&self.key)).await
    }
}

/// A first server and its standby behind one address, and everything that uses it.
struct Pair {
    first: Redis,
    standby: Redis,
    wire: Wire,
    upstream: Upstream,
    seed: Seed,
}

impl Pair {
    async fn start() -> Self {
        let (first, standby) = (Redis::start(), Redis::start());
        let seed = Seed::new(&first.store()).await;
        let _: String = standby.command(&["REPLICAOF", "127.0.0.1", &first.port().to_string()]);
        let wire = Wire::to_port(first.port());
        let upstream = Upstream::start(|_| answer());
        Self {
            first,
            standby,
            wire,
            upstream,
            seed,
        }
    }

    fn edge(&self) -> Edge {
        let options = EdgeOptions::new(PROXY, self.wire.redis_url(), self.upstream.base_url());
        Edge::start(options.env("TOLLGATE_NETWORK__TRUSTED_PROXIES", "127.0.0.0/8"))
    }

    fn admin(&self) -> Admin {
        let options = AdminOptions::new(ADMIN, self.wire.redis_url());
        Admin::start(options.env("TOLLGATE_NETWORK__TRUSTED_PROXIES", "127.0.0.0/8"))
    }

    /// Cuts the standby off from replication.
    fn cut_off(&self) {
        let _: String = self.standby.command(&["REPLICAOF", "NO", "ONE"]);
    }

    /// The standby takes the first one's place.
    fn take_over(&self) {
        self.first.kill9();
        self.wire.lead_to(self.standby.port());
        self.wire.cut();
    }
}

/// Status of a call from `client`, as named by the trusted proxy.
async fn from(client: &str, caller: &Caller) -> u16 {
    let headers = [("x-forwarded-for", client)];
    caller.chat_with(&headers, body()).await.status
}

/// Status of a request for agents from `client`, as named by the trusted proxy.
async fn agents_for(client: &str, caller: &Caller) -> u16 {
    let headers = [("x-forwarded-for", client)];
    caller.send("GET", "/v1/agents", &headers, "").await.status
}

fn says_one_range_is_kept(metrics: &Option<(u16, String)>, program: &str) -> bool {
    let line = format!("tollgate_{program}_blocked_ranges_kept 1\n");
    metrics.as_ref().is_some_and(|(_, text)| text.contains(&line))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_without_the_last_changes_undoes_none_of_them() {
    let pair = Pair::start().await;
    let (frozen, revoked, free) = (
        Bot::new(&pair.seed).await,
        Bot::new(&pair.seed).await,
        Bot::new(&pair.seed).await,
    );
    // The calls of this agent are lost, too.
    let probe = Bot::new(&pair.seed).await;
    // The first edge sees the changes, the second does not.
    let (admin, edges) = (pair.admin(), [pair.edge(), pair.edge()]);
    for edge in &edges {
        for bot in [&frozen, &revoked, &free] {
            assert_eq!(bot.call(edge).await, 200);
        }
    }
    pair.standby.wait_in_step_with(&pair.first);
    pair.cut_off();
    let freeze = admin
        .caller(&frozen.api_key)
        .post("/v1/agents/bot/freeze", json!({}))
        .await;
    let revoke = format!("/v1/agents/bot/virtual-keys/{}", revoked.key_id);
    let revoke = admin.caller(&revoked.api_key).delete(&revoke).await;
    assert!(
        freeze.status < 300 && revoke.status < 300,
        "{freeze:?} {revoke:?}"
    );
    // Only `async` acknowledges the block: the standby followed a moment ago.
    let cli = Cli::new(ADMIN, pair.wire.redis_url()).env("TOLLGATE_STORE__DURABILITY", "async");
    assert!(cli.json(&["ip", "block", BLOCKED.0]).is_object());
    assert_eq!(
        (frozen.call(&edges[0]).await, revoked.call(&edges[0]).await),
        (403, 401)
    );
    for edge in &edges {
        let caller = edge.caller(&probe.key);
        until("the block", async || from(BLOCKED.1, &caller).await == 403).await;
    }
    // The admin server, too, has the block only after it read the list.
    let caller = admin.caller(&probe.api_key);
    until("the block at the admin server", async || {
        agents_for(BLOCKED.1, &caller).await == 403
    })
    .await;

    pair.take_over();
    for edge in &edges {
        for bot in [&frozen, &revoked] {
            until("a denial of an account that lost a change", async || {
                let lost = edge.logs().lines().any(|line| {
                    line.contains("the store lost writes of this account")
                        && line.contains(&bot.agent.account.id)
                });
                bot.call(edge).await == 503 && lost
            })
            .await;
        }
    }
    for edge in &edges {
        let caller = edge.caller(&free.key);
        until("the store", async || free.call(edge).await == 200).await;
        assert_eq!(from(BLOCKED.1, &caller).await, 403, "what was blocked stays so");
        until("the edge's copy", async || {
            says_one_range_is_kept(&edge.ops("/metrics"), "proxy")
        })
        .await;
    }
    for bot in [&frozen, &revoked] {
        assert_eq!(agents_for(ELSEWHERE, &admin.caller(&bot.api_key)).await, 503);
    }

    until("the admin server's copy", async || {
        says_one_range_is_kept(&admin.ops("/metrics"), "admin")
    })
    .await;
    // The operator reviews the loss, accepts it, and makes the changes again.
    for bot in [&frozen, &revoked] {
        let account = &bot.agent.account.id;
        assert_fields!(cli.json(&["store", "accept", "--account", account]), { "accepted": 1 });
        for edge in &edges {
            until("an account that was accepted", async || {
                bot.call(edge).await == 200
            })
            .await;
        }
    }
}
