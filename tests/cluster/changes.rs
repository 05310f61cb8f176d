//! Changes of money of every kind, and a check that acknowledged ones are kept. Each is repeated until it is
//! acknowledged, as the documents prescribe, and once more at the end.

use crate::fixture::SOON;
use crate::repeated_work::Ongoing;
use domain::mode::Mode;
use harness::{Admin, Caller, Reply, SeedAccount, assert_fields};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Pause between two attempts at the same change.
const PAUSE: Duration = Duration::from_millis(20);

/// An account in test mode with an agent that buys and one that sells.
#[derive(Clone)]
pub struct Customer {
    caller: Caller,
    buyer: String,
    seller: String,
}

/// An acknowledged change and its reply.
struct Acknowledged {
    path: &'static str,
    key: String,
    body: Value,
    answer: Value,
}

impl Customer {
    pub async fn new(account: &SeedAccount, admin: &Admin) -> Self {
        let caller = admin.caller(&account.api_key(Mode::Test).await);
        let mut agents = Vec::new();
        for name in ["buyer", "seller"] {
            let made = caller.post("/v1/agents", json!({ "name": name })).await;
            assert_eq!(made.status, 200, "{}", made.text());
            agents.push(made.json()["agent"]["id"].as_str().expect("an id").to_owned());
        }
        let policy = json!({ "maxSpendPerDay": 1_000_000 });
        let reply = caller.post(&format!("/v1/policies/{}", agents[0]), policy).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let [buyer, seller] = agents.try_into().expect("two agents");
        Self {
            caller,
            buyer,
            seller,
        }
    }

    async fn send(&self, path: &str, key: &str, body: &Value) -> Reply {
        let header = [("idempotency-key", key)];
        self.caller.send("POST", path, &header, body.to_string()).await
    }

    /// Repeats the request until it is acknowledged.
    async fn repeat_until_acknowledged(&self, path: &'static str, key: String, body: Value) -> Acknowledged {
        let end = Instant::now() + SOON;
        let reply = loop {
            let reply = self.send(path, &key, &body).await;
            if reply.status != 503 {
                break reply;
            }
            assert!(Instant::now() < end, "{path} {key}: {}", reply.text());
            tokio::time::sleep(PAUSE).await;
        };
        let mut answer = reply.json();
        let done = reply.status == 200 || answer["replayed"] == json!(true);
        assert!(done, "{path} {key}: {}", reply.text());
        // A replayed release has one field more.
        let fields = answer.as_object_mut().expect("an object");
        for again in ["replayed", "error", "code"] {
            fields.remove(again);
        }
        Acknowledged {
            path,
            key,
            body,
            answer,
        }
    }

    /// Deposits two dollars, spends one and pays the other to the seller through an escrow.
    async fn business(&self, name: &str, acknowledged: &mut Vec<Acknowledged>) {
        let key = |step: &str| format!("{name}-{step}");
        let Self { buyer, seller, .. } = self;
        let deposit = json!({ "wallet": "user", "amount": 2, "reference": name });
        acknowledged.push(
            self.repeat_until_acknowledged("/v1/wallet/deposits", key("deposit"), deposit)
                .await,
        );
        let transfer = json!({ "from": "user", "to": buyer, "amount": 2 });
        acknowledged.push(
            self.repeat_until_acknowledged("/v1/wallet/transfer", key("transfer"), transfer)
                .await,
        );
        let spend = json!({ "agent": buyer, "amount": 1, "description": name });
        acknowledged.push(
            self.repeat_until_acknowledged("/v1/spend", key("spend"), spend)
                .await,
        );
        let escrow = json!({ "fromWalletId": buyer, "toWalletId": seller, "amount": 1 });
        let made = self
            .repeat_until_acknowledged("/v1/escrow/create", key("create"), escrow)
            .await;
        let number = json!({ "escrowId": made.answer["escrow"]["id"] });
        acknowledged.push(made);
        for (path, step) in [("/v1/escrow/fund", "fund"), ("/v1/escrow/release", "release")] {
            acknowledged.push(
                self.repeat_until_acknowledged(path, key(step), number.clone())
                    .await,
            );
        }
    }

    /// Returns the agent's balance in USD.
    async fn wallet(&self, agent: &str) -> Value {
        let reply = self.caller.get(&format!("/v1/agents/{agent}/wallet")).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["usdc"].clone()
    }
}

/// Rounds of [`Customer::business`] that repeat until [`end`](Self::end).
pub struct Changes {
    customer: Customer,
    ongoing: Ongoing<Vec<Acknowledged>>,
}

impl Changes {
    pub fn start(customer: &Customer) -> Self {
        let ongoing = Ongoing::start(|at, going| {
            let customer = customer.clone();
            async move {
                let mut acknowledged = Vec::new();
                while going.on() {
                    let name = format!("business-{at}-{}", acknowledged.len());
                    customer.business(&name, &mut acknowledged).await;
                    going.one_done();
                }
                acknowledged
            }
        });
        let customer = customer.clone();
        Self { customer, ongoing }
    }

    /// Waits for `count` more rounds of business.
    pub async fn more(&self, count: usize) {
        self.ongoing.more(count).await;
    }

    /// Ends the changes. Asserts that each acknowledged one gets the same reply again and that the balances add up.
    /// Returns the number of changes.
    pub async fn end(self) -> usize {
        let Self { customer, ongoing } = self;
        let (businesses, acknowledged) = ongoing.end().await;
        let acknowledged: Vec<Acknowledged> = acknowledged.into_iter().flatten().collect();
        for Acknowledged {
            path,
            key,
            body,
            answer,
        } in &acknowledged
        {
            let reply = customer.send(path, key, body).await;
            let again = reply.json();
            assert_fields!(again, { "replayed": true }, "{path} {key} is gone: {}", reply.text());
            for (name, value) in answer.as_object().expect("an object") {
                assert_eq!(again[name], *value, "{path} {key}: {name}");
            }
        }
        assert_eq!(customer.wallet(&customer.buyer).await, json!(0));
        assert_eq!(customer.wallet(&customer.seller).await, json!(businesses));
        acknowledged.len()
    }
}
