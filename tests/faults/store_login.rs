//! A store that refuses the login of a process for a while: the user was switched off, or had another password. The
//! process connects again by itself.

use crate::fixture::{PROXY, SOON, answer, body, unavailable};
use harness::{
    Admin, AdminOptions, Caller, Edge, EdgeOptions, Mode, Redis, RedisCluster, Seed, Store, Upstream,
    eventually, open_cap, until,
};
use std::time::Duration;

const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Login of the processes.
const LOGIN: &str = "someone:secret-word@";
/// Rules under which the store refuses [`LOGIN`].
const REFUSALS: [&[&str]; 2] = [&["off"], &["resetpass", ">another-word"]];
/// Time for which the login stays refused: longer than the shortest time between two reconnects.
const REFUSED_FOR: Duration = Duration::from_secs(2);

/// Makes each server accept [`LOGIN`].
fn admit(servers: &[Redis]) {
    for server in servers {
        let rules = [
            "on",
            "resetpass",
            ">secret-word",
            "allkeys",
            "allchannels",
            "+@all",
        ];
        let _: String = server.command(&[&["ACL", "SETUSER", "someone"][..], &rules].concat());
    }
}

/// Makes each server refuse [`LOGIN`], and closes its connections.
fn refuse(servers: &[Redis], rules: &[&str]) {
    for server in servers {
        let _: String = server.command(&[&["ACL", "SETUSER", "someone"][..], rules].concat());
        let _: u64 = server.command(&["CLIENT", "KILL", "USER", "someone"]);
    }
}

/// Processes that log in to one store, and a caller of each.
struct Processes {
    edges: Vec<(Edge, Caller)>,
    admin: (Admin, Caller),
}

impl Processes {
    /// Starts an edge for each address, and a management server; does not wait until they are ready.
    async fn start(seed: &Seed, urls: &[String], upstream: &Upstream) -> Self {
        let (agent, key) = seed.ready_agent("enterprise", open_cap()).await;
        let api_key = agent.account.api_key(Mode::Live).await;
        let edge = |url: &String| {
            let options = EdgeOptions::new(PROXY, url.clone(), upstream.base_url());
            let edge = Edge::start(options.until_alive());
            let caller = edge.caller(&key);
            (edge, caller)
        };
        let admin = Admin::start(AdminOptions::new(ADMIN, urls[0].clone()).until_alive());
        let caller = admin.caller(&api_key);
        Self {
            edges: urls.iter().map(edge).collect(),
            admin: (admin, caller),
        }
    }

    /// Waits until each process serves its caller.
    async fn serve(&self) {
        for (edge, caller) in &self.edges {
            until("an approved call", async || {
                caller.chat(body()).await.status == 200
            })
            .await;
            eventually("readiness", SOON, async || {
                (edge.ops("/readyz")?.0 == 200).then_some(())
            })
            .await;
        }
        until("a management server that serves", async || {
            self.admin.1.get("/v1/agents").await.status == 200
        })
        .await;
    }

    /// Waits until each process refuses its caller and gives `why` on `/readyz`.
    async fn fail(&self, why: &str) {
        let is_told = |ops: Option<(u16, String)>| {
            ops.is_some_and(|(status, text)| status == 503 && text.contains(why))
        };
        for (edge, caller) in &self.edges {
            until("the reason", async || is_told(edge.ops("/readyz"))).await;
            unavailable(&caller.chat(body()).await);
        }
        let (admin, caller) = &self.admin;
        until("the reason", async || is_told(admin.ops("/readyz"))).await;
        assert_eq!(caller.get("/v1/agents").await.status, 503);
    }
}

/// Refuses the login of running processes and of those that start meanwhile, and admits it again. `why` is the reason
/// that processes give.
async fn connect_again(servers: &[Redis], seed: &Seed, urls: &[String], why: &str) {
    let upstream = Upstream::start(|_| answer());
    admit(servers);
    let early = Processes::start(seed, urls, &upstream).await;
    early.serve().await;
    for rules in REFUSALS {
        refuse(servers, rules);
        let late = Processes::start(seed, urls, &upstream).await;
        late.fail(why).await;
        early.fail(why).await;
        tokio::time::sleep(REFUSED_FOR).await;
        admit(servers);
        late.serve().await;
        early.serve().await;
    }
}

/// Each change is confirmed by a replica, so the calls also use the pools of dedicated connections.
#[tokio::test]
async fn a_login_that_works_again_is_used_without_a_restart() {
    let (first, standby) = (Redis::start(), Redis::start());
    let seed = Seed::new(&first.store()).await;
    let _: String = standby.command(&["REPLICAOF", "127.0.0.1", &first.port().to_string()]);
    standby.wait_in_step_with(&first);
    let url = |options: &str| format!("redis://{LOGIN}127.0.0.1:{}{options}", first.port());
    let urls = ["", "?protocol=resp3"].map(url);
    connect_again(
        std::slice::from_ref(&first),
        &seed,
        &urls,
        "rejected the credentials",
    )
    .await;
}

#[tokio::test]
async fn a_login_that_works_again_is_used_on_a_cluster() {
    let cluster = RedisCluster::start(3);
    let store = Store::open(&cluster.url(), Duration::from_secs(5)).expect("the cluster");
    let seed = Seed::new(&store).await;
    let url = cluster.url().replace("://", &format!("://{LOGIN}"));
    connect_again(cluster.nodes(), &seed, &[url], "").await;
}

/// A store whose connections are all in use.
#[tokio::test]
async fn a_store_without_a_free_connection_is_used_once_it_has_one() {
    let first = Redis::start();
    let seed = Seed::new(&first.store()).await;
    let url = |options: &str| format!("redis://{LOGIN}127.0.0.1:{}{options}", first.port());
    let urls = ["", "?protocol=resp3"].map(url);
    let upstream = Upstream::start(|_| answer());
    admit(std::slice::from_ref(&first));
    let processes = Processes::start(&seed, &urls, &upstream).await;
    processes.serve().await;
    let own = first.conn().await;
    let clients = async |most: &str| {
        let mut set = redis::cmd("CONFIG");
        let set = set.arg(&["SET", "maxclients", most]);
        set.query_async::<String>(&mut own.clone())
            .await
            .expect("a setting")
    };
    clients("1").await;
    let mut kill = redis::cmd("CLIENT");
    let kill = kill.arg(&["KILL", "USER", "someone"]);
    let _: u64 = kill
        .query_async(&mut own.clone())
        .await
        .expect("closed connections");
    processes.fail("the store did not answer").await;
    tokio::time::sleep(REFUSED_FOR).await;
    clients("1000").await;
    processes.serve().await;
}
