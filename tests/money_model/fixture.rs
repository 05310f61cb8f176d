//! Two accounts, each with a user wallet and three agents that may spend, all with money, and a caller of each.

use domain::mode::Mode;
use harness::{Cli, Redis, Reply, Seed, SeedAccount};
use serde_json::{Value, json};

pub const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Initial balance of each wallet, in USD.
pub const START: &str = "1000";
pub const AGENTS: [&str; 3] = ["ann", "bob", "cid"];

/// An account and the API key of its caller.
pub struct Tenant {
    pub account: SeedAccount,
    pub key: String,
    /// The wallets by number: the user wallet, then the agents'.
    pub wallets: Vec<u64>,
}

pub struct Fixture {
    pub redis: Redis,
    pub cli: Cli,
    pub tenants: [Tenant; 2],
}

/// A store that servers can be started on.
pub async fn initialised(redis: Redis) -> Redis {
    Seed::new(&redis.store()).await;
    redis
}

impl Fixture {
    /// Creates the fixture through an admin server at `url`.
    pub async fn found(redis: Redis, url: &str) -> Self {
        let seed = Seed::new(&redis.store()).await;
        let cli = Cli::new(ADMIN, redis.url());
        let tenants = [
            Tenant::settle(&seed, &cli, url).await,
            Tenant::settle(&seed, &cli, url).await,
        ];
        Self { redis, cli, tenants }
    }

    /// Asserts that `ledger check` finds nothing wrong.
    #[track_caller]
    pub fn books_are_right(&self, what: &str) {
        let output = self.cli.run(&["ledger", "check", "--json"]);
        assert_eq!(output.code, Some(0), "{what}: {}{}", output.stdout, output.stderr);
        let document: Value = serde_json::from_str(&output.stdout).expect("a document");
        assert_eq!(document["ok"], json!(true), "{what}: {document}");
        assert!(document["checked"].as_u64() > Some(0), "{document}");
    }
}

impl Tenant {
    async fn settle(seed: &Seed, cli: &Cli, url: &str) -> Self {
        let account = seed.account("enterprise").await;
        let key = account.api_key(Mode::Live).await;
        let caller = harness::Caller::new(url, &key);
        let mut wallets = Vec::new();
        for agent in AGENTS {
            let made = caller.post("/v1/wallets/create", json!({ "botId": agent })).await;
            assert_eq!(made.status, 200, "{}", made.text());
            let policy = json!({ "name": "open", "agentId": agent });
            assert_eq!(caller.post("/v1/policies", policy).await.status, 200);
        }
        for (at, owner) in std::iter::once("user").chain(AGENTS).enumerate() {
            let reference = format!("{}-{at}", account.id);
            let args = ["deposit", "--account", &account.id, "--wallet", owner];
            let more = ["--amount", START, "--reference", &reference];
            let done = cli.json(&[&args[..], &more[..]].concat());
            assert!(done["transactionId"].is_string(), "{done}");
            let path = match owner {
                "user" => "/v1/wallet".to_owned(),
                agent => format!("/v1/agents/{agent}/wallet"),
            };
            let wallet = ok(&caller.get(&path).await);
            let number = wallet.pointer("/user_wallet/walletId").or(wallet.get("walletId"));
            wallets.push(number.and_then(Value::as_u64).expect("a wallet number"));
        }
        Self {
            account,
            key,
            wallets,
        }
    }
}

/// The body of a 200.
#[track_caller]
pub fn ok(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}
