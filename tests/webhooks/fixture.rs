//! A server with an account, and receivers that record their requests.

use domain::mode::Mode;
use harness::{
    Admin, AdminOptions, Answer, Caller, Cli, Installation, Recorded, Redis, SeedAccount, Upstream,
    eventually,
};
use serde_json::{Value, json};
use std::ops::Deref;
use std::time::Duration;

pub use harness::{problem, success, text};

pub const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");
pub const SECRET: &str = "a secret of the tests";
/// Longest wait for anything: a slow machine is no failure.
pub const SOON: Duration = Duration::from_secs(60);
/// Every event that can be subscribed to.
pub const EVENTS: [&str; 8] = [
    "agent.run.completed",
    "agent.run.failed",
    "agent.frozen",
    "agent.approval_required",
    "wallet.deposit",
    "wallet.low_balance",
    "policy.violation",
    "audit.injection_detected",
];

/// A running server on a store of its own.
pub struct Fixture {
    installation: Installation<(), Admin>,
    options: AdminOptions,
}

impl Deref for Fixture {
    type Target = Installation<(), Admin>;

    fn deref(&self) -> &Self::Target {
        &self.installation
    }
}

/// An account and its caller.
pub struct Owner {
    pub account: SeedAccount,
    pub caller: Caller,
    pub key: String,
}

/// Short delays, and receivers on this machine.
pub fn quick(options: AdminOptions) -> AdminOptions {
    options
        .env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true")
        .env("TOLLGATE_WEBHOOKS__RETRY_DELAYS_MS", "200,400")
        .env("TOLLGATE_WEBHOOKS__TIMEOUT_MS", "1000")
}

impl Fixture {
    pub async fn start() -> Self {
        Self::start_with(Redis::start(), quick).await
    }

    pub async fn start_with(redis: Redis, options: impl FnOnce(AdminOptions) -> AdminOptions) -> Self {
        let options = options(AdminOptions::new(BINARY, redis.url()));
        let installation = Installation::on(redis)
            .await
            .with_admin(BINARY, |_| options.clone());
        Self {
            installation,
            options,
        }
    }

    /// One more server on the same store.
    pub fn another_admin(&self) -> Admin {
        Admin::start(self.options.clone())
    }

    pub fn cli(&self) -> Cli {
        Cli::new(BINARY, self.redis.url())
    }

    /// The keys of all webhooks in the store, without those of the audit trail.
    pub fn webhook_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.redis.command(&["KEYS", "*webhook*"]);
        keys.retain(|key| !key.contains("/audit/"));
        keys
    }

    /// An account with a key that may do everything, in live mode.
    pub async fn owner(&self) -> Owner {
        let account = self.seed.account("startup").await;
        let key = account.api_key(Mode::Live).await;
        Owner {
            caller: self.admin.caller(&key),
            account,
            key,
        }
    }
}

impl Owner {
    /// The same owner, through another server.
    pub fn through(self, admin: &Admin) -> Self {
        let caller = admin.caller(&self.key);
        Self { caller, ..self }
    }

    /// Registers a webhook for these events. Returns its id.
    pub async fn register(&self, url: &str, events: &[&str]) -> String {
        let body = json!({ "url": url, "events": events, "secret": SECRET });
        let made = success(&self.caller.post("/v1/webhooks", body).await, 201);
        text(&made, "/webhook/id").to_owned()
    }

    /// Causes the event `agent.frozen`, once for each call.
    pub async fn freeze(&self, agent: &str) {
        let path = format!("/v1/agents/{agent}");
        if self.caller.get(&path).await.status == 404 {
            let body = json!({});
            let policy = self.caller.post(&format!("/v1/policies/{agent}"), body).await;
            success(&policy, 200);
        }
        let send = async |what: &str| {
            let reply = self.caller.send("POST", &format!("{path}/{what}"), &[], "").await;
            success(&reply, 200);
        };
        send("freeze").await;
        send("unfreeze").await;
    }

    /// The deliveries of a webhook, newest first.
    pub async fn deliveries(&self, webhook: &str) -> Vec<Value> {
        self.deliveries_with(webhook, "limit=200").await.0
    }

    /// The deliveries that a query selects, and their number in all.
    pub async fn deliveries_with(&self, webhook: &str, query: &str) -> (Vec<Value>, u64) {
        let path = format!("/v1/webhooks/{webhook}/deliveries?{query}");
        let listed = success(&self.caller.get(&path).await, 200);
        let deliveries = listed["deliveries"].as_array().unwrap().clone();
        (deliveries, listed["total"].as_u64().unwrap())
    }

    /// Waits until the oldest delivery of a webhook fits; returns it.
    pub async fn wait_for(&self, webhook: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        eventually(what, SOON, async || {
            let deliveries = self.deliveries(webhook).await;
            deliveries.last().filter(|delivery| fits(delivery)).cloned()
        })
        .await
    }
}

/// A receiver with these answers.
pub fn receiver(answer: impl Fn(&Recorded) -> Answer + Send + Sync + 'static) -> Upstream {
    Upstream::start(answer)
}

/// A receiver that accepts everything.
pub fn accepting() -> Upstream {
    receiver(|_| Answer::bytes(200, "ok"))
}

/// URL of a receiver.
pub fn url(receiver: &Upstream) -> String {
    format!("http://{}/hook", receiver.addr())
}

/// Number of attempts of a delivery.
pub fn attempts(delivery: &Value) -> usize {
    delivery["attempts"].as_array().unwrap().len()
}
