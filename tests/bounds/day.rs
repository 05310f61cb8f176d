//! A day of an account: its requests, those of its users and of other accounts, its operator's commands, and the work
//! of the workers. Together they run nearly every script.

mod direct_runs;
mod neighbour;
mod operator;
mod people;
mod work;

use crate::fill::{AGENT, MODE, Tenant};
use crate::fixture::{BINARY, Fixture, success, text};
use domain::permission::Permission;
use harness::{Answer, Caller, Cli, Edge, Upstream, chat_body, eventually};
use serde_json::{Value, json};
use std::time::Duration;

/// Longest wait for a worker.
const SOON: Duration = Duration::from_secs(60);

/// The body that registers a webhook.
fn webhook(url: &str) -> Value {
    json!({ "url": url, "secret": "whsec_0123456789abcdef0123456789", "events": ["agent.frozen"] })
}

/// An account with all clients and servers of its day.
pub struct Person {
    pub tenant: Tenant,
    approver: Caller,
    edge: Caller,
    cli: Cli,
    /// Another account, and a receiver of webhooks.
    other: Tenant,
    receiver: Upstream,
}

impl Person {
    pub async fn new(fixture: &Fixture, edge: &Edge) -> Self {
        let (tenant, other) = (Tenant::new(fixture).await, Tenant::new(fixture).await);
        let may = [Permission::Read, Permission::Approve];
        let key = tenant.account.issue(MODE, &may, &[], None).await;
        let agent = tenant.account.agent(AGENT);
        agent.provider_key("sk-test-provider-key").await;
        let (_, secret) = agent.virtual_key_with_id().await;
        let policy = json!({ "approvalThreshold": 50 });
        let path = format!("/v1/policies/{AGENT}");
        success(&tenant.caller.post(&path, policy).await, 200);
        Self {
            approver: fixture.admin.caller(&key.secret),
            edge: edge.caller(&secret),
            cli: Cli::new(BINARY, fixture.redis.url())
                .env("TOLLGATE_LIMITS__TRANSACTIONS", "100000000000")
                .env("TOLLGATE_LIMITS__DEPOSITS", "100000000000"),
            tenant,
            other,
            receiver: Upstream::start(|_| Answer::bytes(200, "ok")),
        }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let reply = self.tenant.caller.post(&format!("/v1{path}"), body).await;
        assert!(
            [200, 201, 202].contains(&reply.status),
            "{path}: {}",
            reply.text()
        );
        reply.json()
    }

    async fn delete(&self, path: &str) {
        success(&self.tenant.caller.delete(&format!("/v1{path}")).await, 200);
    }

    /// Runs a day of the account.
    pub async fn live(&self, fixture: &Fixture, round: usize) {
        self.manage().await;
        self.deliver().await;
        self.people(fixture, round).await;
        self.operate(round).await;
        self.deal(round).await;
        self.work(fixture).await;
        let (account, reference) = (
            &self.tenant.account.id,
            format!("{}-{round}", self.tenant.account.id),
        );
        let deposit = [
            "deposit",
            "--account",
            account,
            "--wallet",
            &self.tenant.wallet,
            "--amount",
            "500",
            "--reference",
        ];
        let _deposit = self.cli.json(&[&deposit[..], &[&reference]].concat());
        self.post("/spend", json!({ "agent": AGENT, "amount": 1, "runId": "day" }))
            .await;
        for word in ["approve", "deny"] {
            let waits = self.post("/spend", json!({ "agent": AGENT, "amount": 60 })).await;
            let path = format!("/v1/intents/{}/{word}", text(&waits, "/intent_id"));
            let decided = self.approver.post(&path, json!({})).await;
            assert_eq!(decided.status, 200, "{}", decided.text());
        }
        self.post(
            "/wallet/transfer",
            json!({ "from": AGENT, "to": "user", "amount": 1 }),
        )
        .await;
        let user =
            success(&self.tenant.caller.get("/v1/wallet?limit=1").await, 200)["user_wallet"]["walletId"]
                .clone();
        for word in ["release", "dispute"] {
            let own: u64 = self.tenant.wallet.parse().unwrap();
            let agreed = json!({ "fromWalletId": own, "toWalletId": user, "amount": 1 });
            let escrow = self.post("/escrow/create", agreed).await["escrow"]["id"].clone();
            self.post("/escrow/fund", json!({ "escrowId": escrow })).await;
            self.post(&format!("/escrow/{word}"), json!({ "escrowId": escrow }))
                .await;
        }
        let call = self
            .edge
            .chat_with(&[("x-service-run-id", "day")], chat_body("gpt-4o-mini", "hello"))
            .await;
        assert_eq!(call.status, 200, "{}", call.text());
        self.post(
            &format!("/agents/{AGENT}/runs/day"),
            json!({ "status": "completed" }),
        )
        .await;
        self.post("/decisions/dry-run", json!({ "agent": AGENT, "amount": 1 }))
            .await;
        success(&self.tenant.caller.get("/v1/audit?limit=1").await, 200);
    }

    async fn manage(&self) {
        let made = self.post("/agents", json!({ "name": "n" })).await;
        let path = format!("/agents/{}", text(&made, "/agent/id"));
        let body = json!({ "name": "m" });
        success(&self.tenant.caller.patch(&format!("/v1{path}"), body).await, 200);
        self.post(&format!("{path}/freeze"), json!({})).await;
        self.post(&format!("{path}/unfreeze"), json!({})).await;
        let body = json!({ "name": "All", "maxSpendPerDay": 1000 });
        let policy = self.post("/policies", body).await;
        self.delete(&format!("/policies/{}", text(&policy, "/policy/id")))
            .await;
        let keys = format!("/agents/{AGENT}/virtual-keys");
        let key = self.post(&keys, json!({ "name": "k" })).await;
        self.delete(&format!("{keys}/{}", text(&key, "/virtualKey/keyId")))
            .await;
        let provider = json!({ "provider": "openai", "apiKey": "sk-test-provider-key" });
        self.post(&format!("/agents/{AGENT}/provider-keys"), provider)
            .await;
        let hook = webhook("http://127.0.0.1:9/a");
        let hook = self.post("/webhooks", hook).await;
        let hook = format!("/webhooks/{}", text(&hook, "/webhook/id"));
        let body = json!({ "description": "d" });
        success(&self.tenant.caller.patch(&format!("/v1{hook}"), body).await, 200);
        self.post(&format!("{hook}/test"), json!({})).await;
        self.delete(&hook).await;
        // The agent is deleted with a revoked key.
        let keys = format!("{path}/virtual-keys");
        let key = self.post(&keys, json!({ "name": "k" })).await;
        self.delete(&format!("{keys}/{}", text(&key, "/virtualKey/keyId")))
            .await;
        self.delete(&path).await;
    }

    /// Delivers an event to a webhook, and delivers it again.
    async fn deliver(&self) {
        let hook = webhook(&self.receiver.base_url());
        let hook = self.post("/webhooks", hook).await;
        let hook = format!("/webhooks/{}", text(&hook, "/webhook/id"));
        self.post(&format!("{hook}/test"), json!({})).await;
        let delivered = async || {
            let path = format!("/v1{hook}/deliveries");
            let list = success(&self.tenant.caller.get(&path).await, 200);
            let first = list["deliveries"][0].clone();
            (first["status"] == "delivered").then(|| text(&first, "/id").to_owned())
        };
        let delivery = eventually("a delivery", SOON, &delivered).await;
        self.post(&format!("{hook}/deliveries/{delivery}/redeliver"), json!({}))
            .await;
        eventually("another delivery", SOON, &delivered).await;
        self.delete(&hook).await;
    }
}
