//! A whole installation on a store that is configured by `deploy/redis`: each program comes with its own user.

use crate::files::{path, run, text};
use crate::{ADMIN, PROXY};
use harness::{
    Admin, AdminOptions, Answer, Caller, Cli, Edge, EdgeOptions, Redis, Reply, Upstream, chat_body,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What every call is estimated at, in nanos: the body of [`body`] at the price of its model.
pub const MODEL: &str = "gpt-4o-mini";

/// The store, its users, and commands of the operator.
pub struct Town {
    pub redis: Redis,
    pub dir: TempDir,
    pub cli: Cli,
    pub upstream: Upstream,
}

/// An account with an agent that may call, and who manages it.
pub struct Citizen {
    pub account: String,
    pub manager: Caller,
    pub api_key: String,
    pub caller: Caller,
    pub virtual_key: String,
}

/// `redis.conf` without what says where it listens and where its files are, and the users' file, whose `default` user is
/// the harness as the store's administrator: only a superuser may look into ACL LOG.
pub fn configuration(dir: &Path) -> [String; 4] {
    let places = ["bind ", "port ", "dir ", "aclfile "];
    let conf = text("deploy/redis/redis.conf");
    let kept = conf
        .lines()
        .filter(|line| !places.iter().any(|place| line.starts_with(place)));
    let file = dir.join("redis.conf");
    std::fs::write(&file, kept.collect::<Vec<_>>().join("\n")).unwrap();
    let users = make_users(dir, None);
    let [file, users] = [file, users].map(|file| file.display().to_string());
    ["--include".to_owned(), file, "--aclfile".to_owned(), users]
}

/// Runs `users.sh`, rotating a password if one is named, and lets the harness in as the administrator; the file.
pub fn make_users(dir: &Path, rotate: Option<&str>) -> PathBuf {
    let mut script = Command::new(path("deploy/redis/users.sh"));
    run(script.arg(dir).env("ROTATE", rotate.unwrap_or_default()));
    let users = dir.join("users.acl");
    let acl = std::fs::read_to_string(&users).unwrap();
    let off = "user default off resetpass resetkeys resetchannels -@all";
    assert!(acl.contains(off), "the default user must be off: {acl}");
    std::fs::write(&users, acl.replace(off, "user default on nopass ~* &* +@all")).unwrap();
    users
}

/// The address that `users.sh` wrote for a program, at another place.
pub fn address(dir: &Path, name: &str, place: &str) -> String {
    let url = std::fs::read_to_string(dir.join(format!("{name}.url"))).unwrap();
    url.trim().replace("127.0.0.1:6379", place)
}

/// A small body.
pub fn body() -> Value {
    chat_body(MODEL, "Say hello")
}

/// The body of an answer that must have this status.
#[track_caller]
pub fn ok(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{reply:?}");
    reply.json()
}

impl Town {
    /// A store with a ledger.
    pub fn found() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = configuration(dir.path());
        let redis = Redis::start_with(&options.each_ref().map(String::as_str));
        let place = format!("127.0.0.1:{}", redis.port());
        let cli = Cli::new(ADMIN, address(dir.path(), "operator", &place));
        let cli = cli.env("TOLLGATE_AUDIT__ARCHIVE", archive(dir.path()));
        assert_eq!(cli.json(&["store", "init"])["appendOnly"], true);
        Self {
            redis,
            dir,
            cli,
            upstream: Upstream::start(|_| Answer::chat(9, 12)),
        }
    }

    /// A file with a program's address, as a server's `store.url_file`.
    pub fn url_file(&self, name: &str) -> String {
        let place = format!("127.0.0.1:{}", self.redis.port());
        let file = self.dir.path().join(format!("{name}.at"));
        std::fs::write(&file, address(self.dir.path(), name, &place)).unwrap();
        file.display().to_string()
    }

    pub fn edge(&self) -> Edge {
        let options = EdgeOptions::new(PROXY, "redis://127.0.0.1:1", self.upstream.base_url());
        Edge::start(options.env("TOLLGATE_STORE__URL_FILE", self.url_file("edge")))
    }

    pub fn admin(&self) -> Admin {
        let options = AdminOptions::new(ADMIN, "redis://127.0.0.1:1")
            .env("TOLLGATE_STORE__URL_FILE", self.url_file("admin"))
            .env("TOLLGATE_AUDIT__ARCHIVE", archive(self.dir.path()))
            .env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", "200")
            .env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true");
        Admin::start(options)
    }

    /// An account whose agent `bot` may call.
    pub async fn settle(&self, edge: &Edge, admin: &Admin) -> Citizen {
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
        ok(
            &manager
                .post("/v1/wallets/create", json!({ "botId": "bot" }))
                .await,
            200,
        );
        let secret = json!({ "provider": "openai", "apiKey": "sk-test-provider-key" });
        ok(&manager.post("/v1/agents/bot/provider-keys", secret).await, 201);
        let cap = json!({ "maxSpendPerDay": 1, "maxSpendPerRun": 1, "maxSpendPerMonth": 10 });
        ok(&manager.post("/v1/policies/bot", cap).await, 200);
        let minted = ok(&manager.post("/v1/agents/bot/virtual-keys", json!({})).await, 201);
        let virtual_key = harness::text(&minted, "/secret").to_owned();
        Citizen {
            caller: edge.caller(&virtual_key),
            virtual_key,
            api_key,
            account,
            manager,
        }
    }
}

/// The archive's directory of a town.
pub fn archive(dir: &Path) -> String {
    dir.join("archive").display().to_string()
}
