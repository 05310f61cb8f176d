//! Tests of [`super`].

use super::*;
use crate::call::denials::window;
use crate::fixture::{ESTIMATE, Fixture, StoreReaction, runs, text};
use crate::reply::denied::Denied;
use domain::denial::Denial;
use domain::denial_window::record_of;
use domain::money::Nanos;
use store::call::authorize::AUTHORIZE;
use store::call::settle::SETTLE;
use store::lookup::VirtualKeyOwner;

/// Returns the decision for a given reply of the store, and the number of voids in the queue afterwards.
async fn decided(reply: StoreReaction) -> (Result<Approval, Rejection>, usize) {
    let fixture = Fixture::with_decision(reply).await;
    let decider = fixture.pipeline().decider;
    let decided = decider.decide(&fixture.key(), &fixture.request()).await;
    (decided, fixture.retry_queue.len())
}

fn denied(rejection: Rejection) -> Denied {
    match rejection {
        Rejection::Denied(denied) => *denied,
        Rejection::Refused(refusal) => panic!("{refusal:?}"),
    }
}

/// Ids are random, so an earlier execution used the id and its reply was lost.
#[tokio::test]
async fn a_known_id_is_voided() {
    let (decided, voids) = decided(text("known 1 7 free")).await;
    let denial = denied(decided.unwrap_err()).denial;
    assert_eq!((denial, voids), (Denial::ServiceUnavailable, 1));
}

#[tokio::test]
async fn only_what_may_have_charged_is_voided() {
    for (reply, expected) in [
        (StoreReaction::Close, 1),
        (text("yes 1 7 free"), 1),
        (text("lost_writes 1 7 free"), 0),
        (text("too_much 1 7 free"), 0),
        (StoreReaction::Raw("-OOM no memory\r\n".to_owned()), 0),
    ] {
        let (decided, voids) = decided(reply.clone()).await;
        let denial = denied(decided.unwrap_err()).denial;
        assert_eq!(
            (denial, voids),
            (Denial::ServiceUnavailable, expected),
            "{reply:?}"
        );
    }
}

/// The id of a denial leads to its record: it begins with `allow_` if Cap denied the call, and with `deny_` otherwise.
/// It is the id of the rate window if the window counts the denial.
#[tokio::test]
async fn a_denial_has_the_id_and_the_plan_of_its_decision() {
    for (reply, denial, prefix) in [
        ("daily_limit 1 8 free", Denial::DailyLimit, "allow_"),
        ("rate_limited 1 8 free", Denial::RateLimited, "deny_"),
        (
            "counted_in 1 8 1795000060000 rate_limited free",
            Denial::RateLimited,
            "deny_",
        ),
    ] {
        let (decided, voids) = decided(text(reply)).await;
        let denied = denied(decided.unwrap_err());
        assert_eq!((denied.denial, voids), (denial, 0), "{reply}");
        assert!(denied.id.starts_with(prefix), "{reply}: {}", denied.id);
        assert_eq!(denied.run_id.as_deref(), Some("r"));
        assert_eq!(denied.estimate, Nanos::new(ESTIMATE));
        assert_eq!(denied.message, None);
        assert!(denied.plan.is_some(), "{reply}");
    }
    let owner = VirtualKeyOwner::new("acct_1", "bot", "vk_1");
    let ends_ms = clock::now_ms() + 30_000;
    let reply = text(&format!("counted_in 1 8 {ends_ms} rate_limited free"));
    let counted = denied(decided(reply).await.0.unwrap_err());
    let record = window(&owner, Denial::RateLimited, ends_ms).record_id();
    assert_eq!(record_of(&counted.id), Some(record));
}

#[tokio::test]
async fn a_run_beyond_the_budget_has_a_message_of_its_own() {
    let (decided, voids) = decided(text("runs_full 1 8 free")).await;
    let denied = denied(decided.unwrap_err());
    assert_eq!((denied.denial, voids), (Denial::RateLimited, 0));
    assert!(denied.message.unwrap().contains("budget of"));
}

/// The key was sealed for another agent, or with another master key.
#[tokio::test]
async fn a_provider_key_that_does_not_decrypt_releases_the_estimate() {
    let fixture = Fixture::new().await;
    assert!(fixture.health.is_trusted().await);
    fixture.on_command(|command| match () {
        () if runs(command, &AUTHORIZE) => Some(text("ok 1 8 pk_1 c2VhbGVk free")),
        () => runs(command, &SETTLE).then(|| text("settled")),
    });
    let decider = fixture.pipeline().decider;
    let denied = denied(
        decider
            .decide(&fixture.key(), &fixture.request())
            .await
            .unwrap_err(),
    );
    assert_eq!(denied.denial, Denial::ServiceUnavailable);
    assert_eq!(denied.estimate, Nanos::new(ESTIMATE));
    assert_eq!(denied.run_id.as_deref(), Some("r"));
    let settled = fixture.arguments(&SETTLE);
    assert_eq!(settled.len(), 1);
    assert_eq!(
        settled[0][1..],
        [ESTIMATE.to_string().as_str(), "0", "unsent", ""]
    );
    // The entry in the audit trail has the same id, with the other prefix.
    assert_eq!(settled[0][0].replacen("allow_", "deny_", 1), denied.id);
}

/// An estimate beyond the largest amount is decided like any other, but no reply of the store approves it.
#[tokio::test]
async fn a_call_without_an_estimate_is_never_approved() {
    let ok = text("ok 1 8 pk_1 c2VhbGVk free");
    for (reply, expected, voids) in [
        (text("too_much 1 8 free"), Denial::ServiceUnavailable, 0),
        (text("daily_limit 1 8 free"), Denial::DailyLimit, 0),
        (ok, Denial::ServiceUnavailable, 1),
    ] {
        let fixture = Fixture::with_decision(reply.clone()).await;
        let request = CallRequest {
            estimate: None,
            ..fixture.request()
        };
        let decided = fixture.pipeline().decider.decide(&fixture.key(), &request).await;
        let denied = denied(decided.unwrap_err());
        assert_eq!((denied.denial, denied.estimate), (expected, None), "{reply:?}");
        let says_so = denied
            .message
            .is_some_and(|message| message.contains("beyond any amount"));
        assert_eq!(says_so, (expected, voids) == (Denial::ServiceUnavailable, 0));
        assert_eq!(fixture.retry_queue.len(), voids, "{reply:?}");
        let asked = fixture.arguments(&AUTHORIZE);
        assert_eq!((asked.len(), asked[0][10].as_str()), (1, "-"), "{reply:?}");
    }
    let fixture = Fixture::with_decision(text("revoked 1 8 free")).await;
    let request = CallRequest {
        estimate: None,
        ..fixture.request()
    };
    let decided = fixture.pipeline().decider.decide(&fixture.key(), &request).await;
    assert!(matches!(decided, Err(Rejection::Refused(_))), "{decided:?}");
}

#[test]
fn a_plan_without_streams_refuses_the_parameter() {
    assert_eq!(no_streams("free").param.as_deref(), Some("stream"));
}
