//! Deposits, and which of those that were acknowledged are there.

use crate::fixture::SOON;
use crate::repeated_work::Ongoing;
use domain::mode::Mode;
use harness::{Admin, Caller, Reply, SeedAccount, Store, eventually};
use serde_json::{Value, json};
use std::time::Duration;

/// After a deposit that was refused.
const PAUSE: Duration = Duration::from_millis(20);

/// Deposits into the user wallet of an account, in test mode.
#[derive(Clone)]
pub struct Depositor {
    pub account: SeedAccount,
    pub caller: Caller,
}

/// Sent and acknowledged deposits.
#[derive(Debug, Default)]
pub struct Sent {
    pub done: Vec<String>,
    pub not_done: Vec<String>,
}

impl Depositor {
    pub async fn new(account: &SeedAccount, admin: &Admin) -> Self {
        let caller = admin.caller(&account.api_key(Mode::Test).await);
        Self {
            account: account.clone(),
            caller,
        }
    }

    /// One deposit, under its own idempotency key.
    pub async fn deposit(&self, reference: &str) -> Reply {
        let body =
            json!({ "wallet": "user", "amount": "1", "reference": reference, "idempotency_key": reference });
        self.caller.post("/v1/wallet/deposits", body).await
    }

    /// Makes one deposit, which the server must acknowledge at once.
    pub async fn must_deposit(&self, reference: &str) {
        let reply = self.deposit(reference).await;
        assert_eq!(reply.status, 200, "{reference}: {}", reply.text());
    }

    /// Deposits until the server acknowledges it: a machine that stalls for longer than `store.durability_timeout_ms`
    /// answers 503, and the key makes the repetition safe.
    pub async fn deposit_until_acknowledged(&self, reference: &str) {
        let reply = eventually("an acknowledged deposit", SOON, async || {
            let reply = self.deposit(reference).await;
            (reply.status != 503).then_some(reply)
        })
        .await;
        assert_eq!(reply.status, 200, "{reference}: {}", reply.text());
    }

    /// Returns the missing ones. Reads the store itself, since an account that lost writes is refused.
    pub async fn missing(&self, store: &Store, references: &[String]) -> Vec<String> {
        let mut missing = Vec::new();
        for reference in references {
            let key = self.account.keys.in_mode(Mode::Test).deposit(reference);
            // The first command after a server died may break off with its connection.
            let found = eventually("a reply of the store", SOON, async || {
                store.command::<u64>(redis::cmd("EXISTS").arg(&key)).await.ok()
            })
            .await;
            if found == 0 {
                missing.push(reference.clone());
            }
        }
        missing
    }

    /// The balance of the user wallet, by the API.
    pub async fn balance(&self) -> Value {
        let reply = self.caller.get("/v1/wallet").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["user_wallet"]["usdc"].clone()
    }
}

/// Deposits without end.
pub struct Deposits(Ongoing<Sent>);

impl Deposits {
    pub fn start(depositor: &Depositor, name: &str) -> Self {
        Self(Ongoing::start(|at, going| {
            let (depositor, name) = (depositor.clone(), name.to_owned());
            async move {
                let mut sent = Sent::default();
                for number in 0.. {
                    if !going.on() {
                        break;
                    }
                    let reference = format!("{name}-{at}-{number}");
                    let reply = depositor.deposit(&reference).await;
                    if reply.status == 200 {
                        going.one_done();
                        sent.done.push(reference);
                    } else {
                        assert_eq!(reply.status, 503, "{}", reply.text());
                        sent.not_done.push(reference);
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                sent
            }
        }))
    }

    /// Waits for so many more that are acknowledged.
    pub async fn more(&self, count: usize) {
        self.0.more(count).await;
    }

    pub async fn end(self) -> Sent {
        let mut all = Sent::default();
        for sent in self.0.end().await.1 {
            all.done.extend(sent.done);
            all.not_done.extend(sent.not_done);
        }
        all
    }
}
