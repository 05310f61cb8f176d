//! A whole installation on a store configured by `deploy/redis`; each program has its own store user.

use crate::files::{path, run, text};
use crate::{ADMIN, PROXY};
use harness::{
    Admin, AdminOptions, Answer, Caller, Cli, Edge, EdgeOptions, Redis, RedisCluster, Reply, Upstream,
    chat_body,
};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const MODEL: &str = "gpt-4o-mini";
/// Estimate of [`body`], in nano-USD. [`ACTUAL`] is its cost.
const ESTIMATE: u64 = 615_450;
const ACTUAL: u64 = 8_550;

/// Servers of the store.
enum Servers {
    One(Redis),
    Cluster(RedisCluster),
}

/// The store, its users, and commands of the operator.
pub struct Installation {
    servers: Servers,
    /// The store's port for TLS and the file of its certificate, where it has one.
    tls: Option<(u16, String)>,
    pub dir: TempDir,
    pub cli: Cli,
    pub upstream: Upstream,
}

/// An account with an agent that may call, and the caller that manages it.
pub struct Tenant {
    pub account: String,
    pub manager: Caller,
    pub api_key: String,
    pub caller: Caller,
    pub virtual_key: String,
}

/// The harness's login: only the store's administrator may read ACL LOG.
pub fn login(dir: &Path) -> String {
    let files = ["administrator.url", "administrator-1.url"].map(|name| dir.join(name));
    let url = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
    let url = url.unwrap();
    let (login, _) = url.split_once("//").unwrap().1.split_once('@').unwrap();
    format!("{login}@")
}

/// A configuration of the store without its address and its file of users.
pub fn without_places(conf: &str) -> String {
    let places = ["bind ", "port ", "aclfile "];
    let kept = conf
        .lines()
        .filter(|line| !places.iter().any(|place| line.starts_with(place)));
    kept.collect::<Vec<_>>().join("\n")
}

/// `redis.conf` without its address and its file of users, and the file that `users.sh` makes, with a user for replicas
/// (docs/guides/deployment.md).
fn configuration(dir: &Path, scheme: &str) -> Vec<String> {
    let file = dir.join("redis.conf");
    std::fs::write(&file, without_places(&text("deploy/redis/redis.conf"))).unwrap();
    let users = dir.join("users.acl");
    std::fs::write(&users, "user replica on >secret +psync +replconf +ping\n").unwrap();
    make_users(dir, scheme, None);
    let [file, users] = [file, users].map(|file| file.display().to_string());
    let named = ["--include", &file, "--aclfile", &users];
    let options = named
        .iter()
        .chain(&["--masteruser", "replica", "--masterauth", "secret"]);
    options.map(|&option| option.to_owned()).collect()
}

/// Runs `users.sh`, rotating a password if one is named.
pub fn make_users(dir: &Path, scheme: &str, rotate: Option<&str>) {
    let mut script = Command::new(path("deploy/redis/users.sh"));
    let script = script.arg(dir).env("SCHEME", scheme);
    run(script.env("ROTATE", rotate.unwrap_or_default()));
}

/// The address that `users.sh` wrote for a program, at another place.
pub fn address(dir: &Path, name: &str, place: &str) -> String {
    let url = std::fs::read_to_string(dir.join(format!("{name}.url"))).unwrap();
    url.trim().replace("127.0.0.1:6379", place)
}

pub fn body() -> Value {
    chat_body(MODEL, "Say hello")
}

/// The body of an answer that must have this status.
#[track_caller]
pub fn ok(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{reply:?}");
    reply.json()
}

impl Servers {
    fn nodes(&self) -> &[Redis] {
        match self {
            Self::One(redis) => std::slice::from_ref(redis),
            Self::Cluster(cluster) => cluster.nodes(),
        }
    }

    fn place(&self) -> String {
        let nodes = self.nodes().iter();
        let places: Vec<String> = nodes.map(|node| format!("127.0.0.1:{}", node.port())).collect();
        places.join(",")
    }
}

impl Installation {
    /// A server with a ledger.
    pub fn start() -> Self {
        Self::start_on("redis", |login, options| {
            Servers::One(Redis::start_as(login, options, &[]))
        })
    }

    /// A cluster with a ledger: three masters with a replica each.
    pub fn start_on_a_cluster() -> Self {
        Self::start_on("redis-cluster", |login, options| {
            Servers::Cluster(RedisCluster::start_replicated_as(login, 3, options))
        })
    }

    fn start_on(scheme: &str, start: impl FnOnce(&str, &[&str]) -> Servers) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = configuration(dir.path(), scheme);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let servers = start(&login(dir.path()), &options);
        let operator = address(dir.path(), "operator", &servers.place());
        let cli = Cli::new(ADMIN, operator).env("TOLLGATE_AUDIT__ARCHIVE", archive(dir.path()));
        assert_eq!(cli.json(&["store", "init"])["appendOnly"], true);
        Self {
            servers,
            tls: None,
            dir,
            cli,
            upstream: Upstream::start(|_| Answer::chat(9, 12)),
        }
    }

    /// The servers of the store.
    pub fn nodes(&self) -> &[Redis] {
        self.servers.nodes()
    }

    /// The only server, or the first of a cluster.
    pub fn redis(&self) -> &Redis {
        &self.nodes()[0]
    }

    /// The part of an address behind the password.
    pub fn place(&self) -> String {
        self.servers.place()
    }

    /// Makes all programs use TLS from now on.
    pub fn move_to_tls(&mut self, port: u16, certificate: &str) {
        self.tls = Some((port, certificate.to_owned()));
        let operator = self.address("operator");
        let cli = Cli::new(ADMIN, operator).env("TOLLGATE_AUDIT__ARCHIVE", archive(self.dir.path()));
        self.cli = cli.env("TOLLGATE_STORE__CA_FILE", certificate);
    }

    fn address(&self, name: &str) -> String {
        match &self.tls {
            None => address(self.dir.path(), name, &self.place()),
            Some((port, _)) => {
                let place = format!("127.0.0.1:{port}");
                address(self.dir.path(), name, &place).replace("redis://", "rediss://")
            }
        }
    }

    /// `store.ca_file`; empty where the store speaks no TLS.
    fn ca_file(&self) -> &str {
        self.tls.as_ref().map_or("", |(_, certificate)| certificate)
    }

    /// A file with a program's address, as a server's `store.url_file`.
    pub fn url_file(&self, name: &str) -> String {
        let file = self.dir.path().join(format!("{name}.at"));
        std::fs::write(&file, self.address(name)).unwrap();
        file.display().to_string()
    }

    pub fn edge(&self) -> Edge {
        let options = EdgeOptions::new(PROXY, "redis://127.0.0.1:1", self.upstream.base_url())
            .env("TOLLGATE_STORE__URL_FILE", self.url_file("edge"))
            .env("TOLLGATE_STORE__CA_FILE", self.ca_file());
        Edge::start(options)
    }

    pub fn admin(&self) -> Admin {
        let options = AdminOptions::new(ADMIN, "redis://127.0.0.1:1")
            .env("TOLLGATE_STORE__URL_FILE", self.url_file("admin"))
            .env("TOLLGATE_STORE__CA_FILE", self.ca_file())
            .env("TOLLGATE_AUDIT__ARCHIVE", archive(self.dir.path()))
            .env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", "200")
            .env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true");
        Admin::start(options)
    }

    /// An account whose agent `bot` may call.
    pub async fn settle(&self, edge: &Edge, admin: &Admin) -> Tenant {
        let made = self
            .cli
            .json(&["account", "create", "--name", "Acme", "--plan", "startup"]);
        let account = made["accountId"].as_str().unwrap().to_owned();
        let permissions = ["--permissions", "read,write,approve"];
        let key = [
            &["api-key", "create", "--account", &account, "--mode", "live"],
            &permissions[..],
        ]
        .concat();
        let api_key = harness::text(&self.cli.json(&key), "/key").to_owned();
        let manager = admin.caller(&api_key);
        let body = json!({ "botId": "bot" });
        ok(&manager.post("/v1/wallets/create", body).await, 200);
        let secret = json!({ "provider": "openai", "apiKey": "sk-test-provider-key" });
        ok(&manager.post("/v1/agents/bot/provider-keys", secret).await, 201);
        let cap = json!({ "maxSpendPerDay": 1, "maxSpendPerRun": 1, "maxSpendPerMonth": 10 });
        ok(&manager.post("/v1/policies/bot", cap).await, 200);
        let minted = ok(&manager.post("/v1/agents/bot/virtual-keys", json!({})).await, 201);
        let virtual_key = harness::text(&minted, "/secret").to_owned();
        Tenant {
            caller: edge.caller(&virtual_key),
            virtual_key,
            api_key,
            account,
            manager,
        }
    }
}

impl Tenant {
    /// A daily cap with room for this many calls, one after the other.
    pub async fn make_room_for(&self, calls: u64) {
        let cap = (ESTIMATE + (calls - 1) * ACTUAL).to_string();
        let cap = format!(r#"{{"maxSpendPerDay":0.{cap:0>9}}}"#);
        let set = self.manager.send("POST", "/v1/policies/bot", &[], cap).await;
        assert_eq!(set.status, 200, "{set:?}");
    }

    pub async fn call(&self, count: u64) {
        for _ in 0..count {
            let reply = self.caller.chat(body()).await;
            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.header("x-service-actual-usd"), Some("0.00000855"));
        }
    }

    /// Asserts that exactly `count` more calls pass.
    pub async fn call_until_denied(&self, count: u64) {
        self.call(count).await;
        for _ in 0..2 {
            assert_eq!(self.caller.chat(body()).await.error_code(), "daily_limit");
        }
    }
}

/// The archive's directory of a installation.
pub fn archive(dir: &Path) -> String {
    dir.join("archive").display().to_string()
}
