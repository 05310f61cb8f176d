//! An account whose agents spend, and their counters in the store.

pub use harness::replayed;

use crate::fixture::{Fixture, success, text};
use domain::mode::Mode;
use domain::permission::Permission;
use harness::{Caller, Reply, SeedAccount};
use serde_json::{Value, json};
use store::intent::IntentRecord;
use store::keys::IntentIndex;
use store::transaction::Transaction;

/// Nanos in a USD.
pub const USD: u64 = 1_000_000_000;

/// An account and its live key.
pub struct Spender {
    pub account: SeedAccount,
    pub caller: Caller,
    pub mode: Mode,
}

impl Spender {
    pub async fn new(fixture: &Fixture, plan: &str) -> Self {
        let (account, caller) = fixture.account(plan).await;
        Self {
            account,
            caller,
            mode: Mode::Live,
        }
    }

    pub async fn in_test_mode(&self, fixture: &Fixture) -> Self {
        Self {
            account: self.account.clone(),
            caller: fixture.caller(&self.account, Mode::Test).await,
            mode: Mode::Test,
        }
    }

    /// A new agent whose wallet holds `balance` nanos, with this policy.
    pub async fn agent(&self, fixture: &Fixture, balance: u64, policy: Value) -> String {
        let made = self.caller.post("/v1/agents", json!({ "name": "Bot" })).await;
        let id = text(&success(&made, 200), "/agent/id").to_owned();
        self.set(fixture, &id, &[("balance", balance)]).await;
        self.policy(&id, policy).await;
        id
    }

    /// Sets the policy of an agent.
    pub async fn policy(&self, agent: &str, policy: Value) {
        let path = format!("/v1/policies/{agent}");
        success(&self.caller.post(&path, policy).await, 200);
    }

    /// Writes numbers into the record of an agent.
    pub async fn set(&self, fixture: &Fixture, agent: &str, fields: &[(&str, u64)]) {
        let key = self.account.keys.in_mode(self.mode).agent(agent);
        let mut set = redis::cmd("HSET");
        let _: u64 = fixture.store.command(set.arg(key).arg(fields)).await.unwrap();
    }

    /// Writes a number into the account's record.
    pub async fn set_account(&self, fixture: &Fixture, field: &str, number: u64) {
        let mut set = redis::cmd("HSET");
        set.arg(self.account.keys.record()).arg(field).arg(number);
        let _: u64 = fixture.store.command(&set).await.unwrap();
    }

    /// `POST /spend`, with an idempotency key unless it is empty.
    pub async fn spend(&self, key: &str, body: impl Into<Value>) -> Reply {
        self.caller.post_once("/v1/spend", key, body).await
    }

    /// Spends this many nanos.
    pub async fn spend_nanos(&self, agent: &str, nanos: u64) -> Reply {
        self.spend("", json!({ "agent": agent, "amount": decimal(nanos) }))
            .await
    }

    /// A caller who may approve, and the id of the key.
    pub async fn approver(&self, fixture: &Fixture) -> (Caller, String) {
        let may = [Permission::Read, Permission::Approve];
        let key = self.account.issue(self.mode, &may, &[], None).await;
        (fixture.admin.caller(&key.secret), key.id)
    }

    /// Balance of the agent's wallet.
    pub async fn balance(&self, fixture: &Fixture, agent: &str) -> u64 {
        self.number(fixture, agent, "balance").await
    }

    /// A number of the agent's record, 0 where there is none.
    pub async fn number(&self, fixture: &Fixture, agent: &str, field: &str) -> u64 {
        let fields = fixture
            .fields(&self.account.keys.in_mode(self.mode).agent(agent))
            .await;
        fields.get(field).map_or(0, |text| text.parse().unwrap())
    }

    /// Charges: agent's day, month and wallet day, account's month.
    pub async fn charged(&self, fixture: &Fixture, agent: &str) -> [u64; 4] {
        let period = fixture.redis.period();
        let record = fixture.fields(&self.account.keys.record()).await;
        let tracked = record.get(&format!("t{}", period.month));
        [
            self.number(fixture, agent, &format!("d{}", period.day)).await,
            self.number(fixture, agent, &format!("m{}", period.month)).await,
            self.number(fixture, agent, &format!("w{}", period.day)).await,
            tracked.map_or(0, |text| text.parse().unwrap()),
        ]
    }

    /// The transactions of an agent, oldest first, as the lists name them.
    pub async fn transactions(&self, fixture: &Fixture, agent: &str) -> Vec<Transaction> {
        let keys = &self.account.keys;
        let mut numbers = Vec::new();
        for list in [
            keys.in_mode(self.mode).transactions_of_wallet(agent, None),
            keys.in_mode(self.mode)
                .transactions_of_wallet(agent, Some("spend")),
        ] {
            let mut range = redis::cmd("LRANGE");
            let listed: Vec<u64> = fixture
                .store
                .command(range.arg(list).arg(0).arg(-1))
                .await
                .unwrap();
            numbers.push(listed);
        }
        assert_eq!(numbers[0], numbers[1], "an agent that only spends");
        let mut lines = Vec::new();
        for number in &numbers[0] {
            let mut get = redis::cmd("HGET");
            get.arg(keys.in_mode(self.mode).transactions()).arg(number);
            let line: String = fixture.store.command(&get).await.unwrap();
            lines.push(Transaction::parse(&line).unwrap());
        }
        lines
    }

    /// The record of an intent, which must be intact.
    pub async fn intent(&self, fixture: &Fixture, id: &str) -> IntentRecord {
        let record = IntentRecord::read(&fixture.store, &self.account.keys.in_mode(self.mode), id).await;
        let record = record.unwrap().unwrap_or_else(|| panic!("no intent {id}"));
        assert!(record.is_intact(), "{record:?}");
        record
    }

    /// Number of intents of the account.
    pub async fn intents(&self, fixture: &Fixture) -> u64 {
        let list = self.account.keys.in_mode(self.mode).intents(IntentIndex::All);
        fixture.store.command(redis::cmd("LLEN").arg(list)).await.unwrap()
    }

    /// The audit log's lines that were written for spends.
    pub async fn audit_lines(&self, fixture: &Fixture) -> Vec<String> {
        let mut range = redis::cmd("LRANGE");
        range
            .arg(self.account.keys.in_mode(self.mode).audit())
            .arg(0)
            .arg(-1);
        let lines: Vec<String> = fixture.store.command(&range).await.unwrap();
        let spends = |line: &String| line.contains("\"type\":\"spend.");
        lines.into_iter().filter(spends).collect()
    }
}

/// An exact amount, as a string that the API takes.
pub fn decimal(nanos: u64) -> String {
    format!("{}.{:09}", nanos / USD, nanos % USD)
}

/// Checks a denial: its status, its reason and every field. Returns the intent's id.
#[track_caller]
pub fn denied(reply: &Reply, reason: &str) -> String {
    let status = match reason {
        "frozen" | "cap_disabled" => 403,
        "insufficient_balance" => 400,
        _ => 402,
    };
    assert_eq!(reply.status, status, "{reason}: {}", reply.text());
    let body = reply.json();
    let id = text(&body, "/intent_id").to_owned();
    let sentence = text(&body, "/blocked_reason");
    let mut expected = json!({
        "success": false, "error": sentence, "code": reason.to_uppercase(), "reason": reason, "intent_id": id,
        "state": "blocked", "blocked_reason": sentence,
    });
    let more = ["plan", "limit", "upgradeTo", "upgradeUrl", "replayed"];
    for (name, value) in body.as_object().unwrap() {
        if more.contains(&name.as_str()) {
            expected[name] = value.clone();
        }
    }
    assert_eq!(body, expected);
    let plan = reason.starts_with("plan_");
    assert_eq!(body.get("plan").is_some(), plan, "{body}");
    assert_eq!(body.get("upgradeUrl").is_some(), plan, "{body}");
    id
}
