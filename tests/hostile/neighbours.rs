//! The well-behaved tenants: each calls, spends, reads and signs in during the attack, and no request of theirs may
//! fail.

use crate::fixture::{Fixture, PROVIDER_KEY};
use domain::mode::Mode;
use harness::{Admin, Caller, Role, SeedUser, TEST_PASSWORD, chat_body, open_cap};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Fewest rounds of each tenant, however short the attack is.
const ROUNDS_MIN: u64 = 10;
/// Rounds between two sign-ins.
const LOGIN_EVERY: u64 = 10;
/// Pause between two rounds: the load of people and agents, not of a load test.
const PAUSE: Duration = Duration::from_millis(25);

struct Neighbour {
    calls: Caller,
    management: Caller,
    user: SeedUser,
}

/// The two well-behaved tenants.
pub struct Neighbours<'a> {
    admin: &'a Admin,
    all: Vec<Neighbour>,
}

impl<'a> Neighbours<'a> {
    pub async fn start(fixture: &'a Fixture) -> Self {
        let mut all = Vec::new();
        for _ in 0..2 {
            let account = fixture.seed.account("unlimited").await;
            let agent = account.agent("bot");
            let policy = open_cap();
            agent.cap(policy).await;
            agent.provider_key(PROVIDER_KEY).await;
            all.push(Neighbour {
                calls: Caller::new(&fixture.edge.url(), &agent.virtual_key().await),
                management: Caller::new(&fixture.admin.url(), &account.api_key(Mode::Live).await),
                user: account.user(Role::Owner).await,
            });
        }
        let admin = &fixture.admin;
        Self { admin, all }
    }

    /// Runs the tenants beside `attack`. Returns its outcome; panics when a tenant's request fails.
    pub async fn beside<T>(&self, attack: impl Future<Output = T>) -> T {
        let over = AtomicBool::new(false);
        let lives = self.all.iter().map(|neighbour| self.live(neighbour, &over));
        let attack = async {
            let outcome = attack.await;
            over.store(true, Ordering::Release);
            outcome
        };
        let (outcome, _) = futures::join!(attack, futures::future::join_all(lives));
        outcome
    }

    async fn live(&self, neighbour: &Neighbour, over: &AtomicBool) {
        let mut round = 0;
        while round < ROUNDS_MIN || !over.load(Ordering::Acquire) {
            neighbour.send_round(round).await;
            if round % LOGIN_EVERY == 0 {
                self.admin.sign_in(&neighbour.user.email, TEST_PASSWORD).await;
            }
            round += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Neighbour {
    async fn send_round(&self, round: u64) {
        let run = format!("run-{}", round % 20);
        let call = chat_body("gpt-4o-mini", "hello");
        let called = self.calls.chat_with(&[("x-service-run-id", &run)], call).await;
        assert_eq!(called.status, 200, "call {round}: {called:?}");
        let spend = json!({ "agent": "bot", "amount": "0.01", "description": "coffee" });
        let spent = self.management.post("/v1/spend", spend).await;
        assert_eq!(spent.status, 200, "spend {round}: {spent:?}");
        let listed = self.management.get("/v1/intents?limit=1").await;
        assert_eq!(listed.status, 200, "look {round}: {listed:?}");
    }
}
