//! The scripts on servers as in production: clustered, behind a socket, over TLS, full, or with lost replies.

mod clock_bound;
mod extensions;
mod faults;
mod kinds;

use crate::fixture::{PROVIDER, open_cap, unlimited, usd};
use clock::now_ms;
use domain::plan::Plan;
use harness::{Seed, SeedAgent, until};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use store::call::authorize::{AccountView, Authorize, AuthorizeOutcome, AuthorizeReply, Charge};
use store::call::hold::HoldName;
use store::call::reap::sweep;
use store::{Store, StoreError};

/// An agent that may call, with its key, view and plan.
struct Payer {
    agent: SeedAgent,
    key_id: String,
    view: AccountView,
    plan: Plan,
}

impl Payer {
    /// Makes a payer on an account of its own. Nothing of it is cached, so each call is like an edge's first.
    async fn new(seed: &Seed) -> Self {
        let agent = seed.account("enterprise").await.agent("bot");
        let (key_id, _secret) = agent.ready(open_cap()).await;
        let view = AccountView {
            plan: "enterprise".to_owned(),
            ..AccountView::default()
        };
        Self {
            agent,
            key_id,
            view,
            plan: unlimited(),
        }
    }

    fn new_name(&self) -> HoldName {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        HoldName {
            account: self.agent.account.id.clone(),
            agent: self.agent.id.clone(),
            run: "r".to_owned(),
            allow_id: format!("allow_{number}"),
        }
    }

    async fn authorize(
        &self,
        store: &Store,
        name: &HoldName,
        estimate: u64,
    ) -> Result<AuthorizeReply, StoreError> {
        self.authorize_for(store, name, estimate, Duration::from_secs(60))
            .await
    }

    async fn authorize_for(
        &self,
        store: &Store,
        name: &HoldName,
        estimate: u64,
        hold_life: Duration,
    ) -> Result<AuthorizeReply, StoreError> {
        let charge = Charge {
            estimate: Some(usd(estimate)),
            run_named: true,
            hold_life,
            price_version: "p1",
            model: "m",
            provider: PROVIDER,
        };
        let (key_id, view, plan) = (self.key_id.as_str(), &self.view, &self.plan);
        Authorize {
            name,
            key_id,
            view,
            plan,
            charge: Some(&charge),
        }
        .execute(&name.keys(), store)
        .await
    }

    /// Authorizes; panics unless approved.
    async fn approve(&self, store: &Store, estimate: u64) -> HoldName {
        let name = self.new_name();
        let answer = self.authorize(store, &name, estimate).await.unwrap();
        assert!(
            matches!(answer.outcome, AuthorizeOutcome::Charged { .. }),
            "{answer:?}"
        );
        name
    }

    /// Authorizes, and lets the reaper keep the hold.
    async fn keep(&self, store: &Store, estimate: u64) -> HoldName {
        let name = self.new_name();
        let life = Duration::from_millis(1);
        let answer = self.authorize_for(store, &name, estimate, life).await.unwrap();
        assert!(
            matches!(answer.outcome, AuthorizeOutcome::Charged { .. }),
            "{answer:?}"
        );
        let bucket = self.agent.account.keys.bucket();
        until("a hold that is kept", async || {
            let kept = sweep(store, bucket, now_ms()).await.unwrap();
            kept.iter().any(|hold| hold.name == name)
        })
        .await;
        name
    }

    async fn charged(&self) -> u64 {
        let counters = self.agent.counters().await;
        assert_eq!(counters.tracked_nanos, counters.month_nanos);
        counters.tracked_nanos
    }
}

fn code(error: &StoreError) -> &str {
    match error {
        StoreError::Refused { code, .. } => code,
        _ => "",
    }
}
