//! Tests of [`super`].

use super::*;
use crate::call::hold::hold_name;
use crate::fixture::{Fixture, StoreReaction, text};
use store::call::authorize::AUTHORIZE;

/// Executes the script for a request that is only counted.
async fn authorized(fixture: &Fixture) -> Result<Decision, NoDecision> {
    let key = fixture.key();
    let name = hold_name(&key.owner, "").unwrap();
    let authorizer = fixture.pipeline().counter.authorizer;
    authorizer.authorize(&key, &name, &name.keys(), None).await
}

/// The edge learns the account's plan from the reply, a bounded number of times for one request.
#[tokio::test]
async fn another_plan_is_sent_again_and_not_for_ever() {
    let fixture = Fixture::with_decision(text("other_plan 1 8 builder")).await;
    assert!(authorized(&fixture).await.is_err());
    let plans: Vec<String> = fixture
        .arguments(&AUTHORIZE)
        .into_iter()
        .map(|args| args[1].clone())
        .collect();
    assert_eq!(plans, ["free", "builder", "builder"]);
}

/// A request that is only counted cannot have been charged, so there is no void.
#[tokio::test]
async fn a_lost_reply_to_a_request_without_a_charge_is_not_voided() {
    let fixture = Fixture::with_decision(StoreReaction::Close).await;
    assert!(authorized(&fixture).await.is_err());
    assert_eq!(fixture.retry_queue.len(), 0);
}

#[tokio::test]
async fn a_refused_account_has_no_request_left() {
    let fixture = Fixture::new().await;
    fixture.on_command(|command| (command[0] == "GET").then(|| text("acct_1 share")));
    fixture.refused.refresh().await;
    let authorizer = fixture.pipeline().counter.authorizer;
    let plan = Plan {
        proxy_requests_per_minute: Some(30_000),
        cap_agents_per_month: Some(7),
        ..Plan::default()
    };
    let refused = authorizer.limits("acct_1", &plan);
    assert_eq!(refused.proxy_requests_per_minute, Some(0));
    assert_eq!(refused.cap_agents_per_month, plan.cap_agents_per_month);
    let other = authorizer.limits("acct_2", &plan);
    assert_eq!(other.proxy_requests_per_minute, plan.proxy_requests_per_minute);
}
