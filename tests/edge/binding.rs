//! Changes bind the very next call on every edge: two edges that have both served the agent before, one store, no
//! waiting.

use super::fixture::{Actor, Fixture, cap, estimated_body, open_cap};
use super::shape::{denied, refused};
use harness::{Caller, CapPolicy, Edge};

const ROUNDS: usize = 3;

struct Pair {
    fixture: Fixture,
    other: Edge,
}

impl Pair {
    async fn new() -> Self {
        let fixture = Fixture::new().await;
        fixture.estimates_stay();
        let other = fixture.another_edge();
        Self { fixture, other }
    }

    /// An agent that both edges know already.
    async fn known(&self, plan: &str, policy: CapPolicy) -> (Actor, [Caller; 2]) {
        let actor = self.fixture.actor(plan, policy).await;
        let callers = [actor.caller.clone(), self.other.caller(&actor.key)];
        passes(&callers).await;
        (actor, callers)
    }
}

async fn passes(callers: &[Caller; 2]) {
    for caller in callers {
        let reply = caller.chat(estimated_body(1)).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
}

async fn denies(callers: &[Caller; 2], reason: &str) {
    for caller in callers {
        denied(&caller.chat(estimated_body(1)).await, reason);
    }
}

#[tokio::test]
async fn freezing_binds_the_next_call() {
    let pair = Pair::new().await;
    let (actor, callers) = pair.known("enterprise", open_cap()).await;
    for _ in 0..ROUNDS {
        actor.agent.frozen(true).await;
        denies(&callers, "frozen").await;
        actor.agent.frozen(false).await;
        passes(&callers).await;
    }
}

#[tokio::test]
async fn a_changed_cap_binds_the_next_call() {
    let pair = Pair::new().await;
    let (actor, callers) = pair.known("enterprise", open_cap()).await;
    for round in 1..=ROUNDS {
        let spent = actor.agent.counters().await.day_nanos;
        actor.agent.cap(cap(None, Some(spent), None)).await;
        denies(&callers, "daily_limit").await;
        actor.agent.cap(cap(None, None, Some(spent))).await;
        denies(&callers, "monthly_limit").await;
        actor.agent.cap(cap(Some(0), None, None)).await;
        denies(&callers, "per_run_limit").await;
        actor.agent.cap(CapPolicy::default()).await;
        denies(&callers, "cap_disabled").await;
        actor.agent.cap(cap(None, Some(spent + 2), None)).await;
        passes(&callers).await;
        denies(&callers, "daily_limit").await;
        assert_eq!(actor.agent.counters().await.day_nanos, spent + 2, "round {round}");
    }
}

/// A revoked key is refused at its very next call, although its owner is cached.
#[tokio::test]
async fn a_revoked_key_is_refused_at_the_next_call() {
    let pair = Pair::new().await;
    for _ in 0..ROUNDS {
        let (actor, callers) = pair.known("enterprise", open_cap()).await;
        let spare = actor.agent.virtual_key().await;
        actor.agent.account.revoke(&actor.key_id).await;
        let arrived = pair.fixture.upstream.arrived();
        for caller in &callers {
            refused(&caller.chat(estimated_body(1)).await, 401, "invalid_api_key");
            refused(&caller.get("/v1/models").await, 401, "invalid_api_key");
        }
        assert_eq!(pair.fixture.upstream.arrived(), arrived, "nothing is forwarded");
        passes(&[pair.fixture.edge.caller(&spare), pair.other.caller(&spare)]).await;
    }
}

#[tokio::test]
async fn a_replaced_provider_key_is_used_by_the_next_call() {
    let pair = Pair::new().await;
    let (actor, callers) = pair.known("enterprise", open_cap()).await;
    let last = || {
        let request = pair.fixture.upstream.requests().pop().expect("a request");
        request.header("authorization").unwrap_or_default().to_owned()
    };
    for round in 0..ROUNDS {
        let secret = format!("sk-round-{round}");
        actor.agent.provider_key(&secret).await;
        for caller in &callers {
            assert_eq!(caller.chat(estimated_body(1)).await.status, 200);
            assert_eq!(last(), format!("Bearer {secret}"));
        }
    }
    // Back to a provider key that was used before.
    actor.agent.provider_key("sk-round-0").await;
    for caller in &callers {
        assert_eq!(caller.chat(estimated_body(1)).await.status, 200);
        assert_eq!(last(), "Bearer sk-round-0");
    }
}

#[tokio::test]
async fn a_changed_plan_binds_the_next_call() {
    let pair = Pair::new().await;
    let (actor, callers) = pair.known("builder", open_cap()).await;
    let account = &actor.agent.account;
    let newer = pair.fixture.edge.equip(account.agent("newer"), open_cap()).await;
    let newer_callers = [newer.caller.clone(), pair.other.caller(&newer.key)];
    passes(&newer_callers).await;
    pair.fixture.set_tracked(&actor.agent, 50_000_000_000);
    // Only two rounds: under the free plan a key has ten requests a minute, and those of the plan before count.
    for _ in 0..2 {
        account.set_plan("free").await;
        denies(&newer_callers, "plan_key_limit").await;
        denies(&callers, "plan_limit").await;
        account.set_plan("builder").await;
        passes(&newer_callers).await;
        passes(&callers).await;
    }
}
