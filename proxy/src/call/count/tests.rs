//! Tests of [`super`].

use super::*;
use crate::fixture::{Fixture, StoreReaction, runs, text};
use domain::denial::Denial;
use store::call::authorize::AUTHORIZE;

/// Creates a fixture whose store replies with `decision` to `authorize.lua`, and whose key has the given state.
async fn fixture(decision: &'static str, is_active: bool, requests: u64) -> Fixture {
    let fixture = Fixture::with_decision(text(decision)).await;
    fixture.on_command(move |command| match command[0].as_str() {
        "ZSCORE" => is_active
            .then(|| text("1"))
            .or(Some(StoreReaction::Raw("$-1\r\n".to_owned()))),
        "GET" => Some(text(&requests.to_string())),
        _ => runs(command, &AUTHORIZE).then(|| text(decision)),
    });
    fixture
}

fn denial(rejection: Rejection) -> Denial {
    match rejection {
        Rejection::Denied(denied) => denied.denial,
        Rejection::Refused(refusal) => panic!("{refusal:?}"),
    }
}

/// The plan of the key's account allows ten requests a minute.
#[tokio::test]
async fn a_rejected_key_is_rejected_early_only_while_it_still_would_be() {
    for (is_active, requests, is_usable) in [
        (true, 9, true),
        (true, 10, false),
        (true, 11, false),
        (false, 0, false),
    ] {
        let fixture = fixture("rate_limited 1 8 free", is_active, requests).await;
        let limit = fixture
            .plans
            .get("free", "acct_a")
            .unwrap()
            .plan
            .proxy_requests_per_minute;
        assert_eq!(limit, Some(10), "the numbers of this test depend on it");
        let key = fixture.key();
        key.record_rejection();
        let rejected = fixture.pipeline().counter.reject_early(&key).await;
        assert_eq!(rejected.is_ok(), is_usable, "{is_active} {requests}");
        assert_eq!(key.was_recently_rejected(), !is_usable, "{is_active} {requests}");
        // A request that continues is not counted here: the call itself is counted later.
        assert_eq!(fixture.arguments(&AUTHORIZE).len(), usize::from(!is_usable));
        if let Err(rejection) = rejected {
            assert_eq!(denial(rejection), Denial::RateLimited);
        }
    }
}

#[tokio::test]
async fn a_key_that_became_usable_since_it_was_read_is_not_admitted() {
    let fixture = fixture("counted 1 8 free", false, 0).await;
    let rejected = fixture.pipeline().counter.reject_early(&fixture.key()).await;
    assert_eq!(denial(rejected.unwrap_err()), Denial::ServiceUnavailable);
}

#[tokio::test]
async fn a_request_that_is_no_call_is_counted_or_denied() {
    for (reply, expected) in [
        ("counted 1 8 free", None),
        ("rate_limited 1 8 free", Some(Denial::RateLimited)),
        (
            "counted_in 1 8 1795000060000 rate_limited free",
            Some(Denial::RateLimited),
        ),
        ("ok 1 8 pk_1 c2VhbGVk free", Some(Denial::ServiceUnavailable)),
        ("runs_full 1 8 free", Some(Denial::ServiceUnavailable)),
        ("too_much 1 8 free", Some(Denial::ServiceUnavailable)),
    ] {
        let fixture = fixture(reply, true, 0).await;
        let counted = fixture.pipeline().counter.count(&fixture.key()).await;
        assert_eq!(counted.err().map(denial), expected, "{reply}");
        // Nothing was charged, so nothing is voided.
        assert_eq!(fixture.retry_queue.len(), 0, "{reply}");
        assert_eq!(
            fixture.arguments(&AUTHORIZE)[0].last().unwrap(),
            "",
            "no estimate"
        );
    }
    let fixture = fixture("revoked 1 8 free", true, 0).await;
    let key = fixture.key();
    let counted = fixture.pipeline().counter.count(&key).await;
    assert!(matches!(counted, Err(Rejection::Refused(_))));
    assert!(key.was_recently_rejected());
}
