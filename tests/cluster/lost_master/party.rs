//! The accounts that take part in a change.

use super::kind::{AGENT_FUNDS, FUNDS};
use crate::fixture::Fixture;
use domain::mode::Mode;
use harness::{Admin, Caller, Reply, SeedAccount};
use serde_json::{Value, json};

/// An account, and a caller for each server.
pub struct Party {
    pub account: SeedAccount,
    pub key: String,
    pub caller: Caller,
    pub wallet: Value,
}

impl Party {
    pub async fn new(fixture: &Fixture, admin: &Admin, node: usize) -> Self {
        let account = fixture.account_on(node).await;
        let key = account.api_key(Mode::Test).await;
        let caller = admin.caller(&key);
        let funds = json!({ "wallet": "user", "amount": FUNDS, "reference": "funds" });
        done(&caller.post("/v1/wallet/deposits", funds).await);
        let wallet = caller.get("/v1/wallet").await.json()["user_wallet"]["walletId"].clone();
        Self {
            account,
            key,
            caller,
            wallet,
        }
    }

    /// An agent with a wallet that has some money, and may spend.
    pub async fn with_agent(self, threshold: u64) -> Self {
        let caller = &self.caller;
        done(&caller.post("/v1/wallets/create", json!({ "botId": "bot" })).await);
        let policy = json!({ "maxSpendPerDay": FUNDS, "approvalThreshold": threshold });
        done(&caller.post("/v1/policies/bot", policy).await);
        let funds = json!({ "wallet": "bot", "amount": AGENT_FUNDS, "reference": "agent" });
        done(&caller.post("/v1/wallet/deposits", funds).await);
        self
    }

    /// Returns an amount of a reply.
    pub async fn holds(&self, path: &str, place: &str) -> u64 {
        let reply = self.caller.get(path).await;
        done(&reply);
        let body = reply.json();
        let held = body.pointer(place).and_then(Value::as_u64);
        held.unwrap_or_else(|| panic!("{path} {place}: {body}"))
    }
}

/// Asserts that a request was executed.
#[track_caller]
pub fn done(reply: &Reply) {
    assert!((200..300).contains(&reply.status), "{}", reply.text());
}
