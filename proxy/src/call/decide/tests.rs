//! Tests of [`super`].

use super::*;
use crate::fixture::{Does, ESTIMATE, Stand, runs, text};
use domain::denial_window::record_of;
use store::call::authorize::AUTHORIZE;
use store::call::settle::SETTLE;

/// The account was heard of before: an account without a plan gets no denial of its own.
fn knows_the_plan(gate: &Gate) {
    let view = AccountView {
        generation: 1,
        version: 7,
        plan: "free".to_owned(),
    };
    gate.heard("acct_1", &view);
}

/// What is decided where the store answers so, and how many voids wait then.
async fn decided(answer: Does) -> (Result<Approval, Stop>, usize) {
    let stand = Stand::new().await;
    assert!(stand.gate.watch.usable(&stand.gate).await);
    knows_the_plan(&stand.gate);
    stand.store_says(move |command| runs(command, &AUTHORIZE).then(|| answer.clone()));
    let decided = decide(&stand.gate, &stand.known(), &stand.wanted()).await;
    (decided, stand.gate.pending.len())
}

fn denial(decided: Result<Approval, Stop>) -> Option<Denial> {
    match decided {
        Err(Stop::Denied(denied)) => Some(denied.denial),
        _ => None,
    }
}

/// The id is random: who finds it taken has asked before, and was not heard.
#[tokio::test]
async fn an_id_that_is_known_is_voided() {
    let (decided, voids) = decided(text("known 1 7 free")).await;
    assert_eq!((denial(decided), voids), (Some(Denial::ServiceUnavailable), 1));
}

#[tokio::test]
async fn what_may_have_charged_is_voided_and_nothing_else() {
    for (answer, voids) in [
        (Does::HangsUp, 1),
        (text("yes 1 7 free"), 1),
        (text("stale 1 7 free"), 0),
        (text("too_much 1 7 free"), 0),
        (Does::Answers("-OOM no memory\r\n".to_owned()), 0),
    ] {
        let (decided, waits) = decided(answer.clone()).await;
        assert_eq!(denial(decided), Some(Denial::ServiceUnavailable), "{answer:?}");
        assert_eq!(waits, voids, "{answer:?}");
    }
}

/// A gate on a store that answers `authorize` so, and how the key stands: its score among the active keys and its requests.
async fn stands(authorize: &'static str, is_active: bool, requests: u64) -> Stand {
    let stand = Stand::new().await;
    assert!(stand.gate.watch.usable(&stand.gate).await);
    knows_the_plan(&stand.gate);
    stand.store_says(move |command| match command[0].as_str() {
        "ZSCORE" => is_active
            .then(|| text("1"))
            .or(Some(Does::Answers("$-1\r\n".to_owned()))),
        "GET" => Some(text(&requests.to_string())),
        _ => runs(command, &AUTHORIZE).then(|| text(authorize)),
    });
    stand
}

fn stopped(stop: Stop) -> Denied {
    match stop {
        Stop::Denied(denied) => *denied,
        Stop::Refused(refusal) => panic!("{refusal:?}"),
    }
}

/// The plan of the key's account has room for ten requests a minute.
#[tokio::test]
async fn a_key_that_was_refused_is_turned_away_only_while_it_still_would_be() {
    for (is_active, requests, is_over) in [
        (true, 9, true),
        (true, 10, false),
        (true, 11, false),
        (false, 0, false),
    ] {
        let stand = stands("rate_limited 1 8 free", is_active, requests).await;
        let gate = &stand.gate;
        let limit = gate.plan("free").unwrap().plan.proxy_requests_per_minute;
        assert_eq!(limit, Some(10), "what the test's numbers stand for");
        let known = stand.known();
        known.refused();
        let turned_away = turn_away(gate, &known).await;
        assert_eq!(turned_away.is_ok(), is_over, "{is_active} {requests}");
        assert_eq!(known.was_refused_lately(), !is_over, "{is_active} {requests}");
        // Who stays is not counted here: the call itself is.
        assert_eq!(stand.arguments(&AUTHORIZE).len(), usize::from(!is_over));
        if let Err(stop) = turned_away {
            assert_eq!(stopped(stop).denial, Denial::RateLimited);
        }
    }
}

#[tokio::test]
async fn a_key_that_is_fine_again_since_the_look_is_not_let_through() {
    let stand = stands("counted 1 8 free", false, 0).await;
    let stop = turn_away(&stand.gate, &stand.known()).await.unwrap_err();
    assert_eq!(stopped(stop).denial, Denial::ServiceUnavailable);
}

#[tokio::test]
async fn a_request_that_is_no_call_is_counted_or_denied() {
    for (answer, denial) in [
        ("counted 1 8 free", None),
        ("rate_limited 1 8 free", Some(Denial::RateLimited)),
        (
            "counted_in 1 8 1795000060000 rate_limited free",
            Some(Denial::RateLimited),
        ),
        ("ok 1 8 pk_1 c2VhbGVk free", Some(Denial::ServiceUnavailable)),
        ("too_much 1 8 free", Some(Denial::ServiceUnavailable)),
    ] {
        let stand = stands(answer, true, 0).await;
        let admitted = admit(&stand.gate, &stand.known()).await;
        assert_eq!(
            admitted.err().map(|stop| stopped(stop).denial),
            denial,
            "{answer}"
        );
        // Nothing of it can have been charged, so nothing is given back.
        assert_eq!(stand.gate.pending.len(), 0, "{answer}");
        assert_eq!(stand.arguments(&AUTHORIZE)[0].last().unwrap(), "", "no estimate");
    }
    let revoked = stands("revoked 1 8 free", true, 0).await;
    let known = revoked.known();
    assert!(matches!(
        admit(&revoked.gate, &known).await,
        Err(Stop::Refused(_))
    ));
    assert!(known.was_refused_lately());
}

/// Each denial is told under the id that leads to its entry: Cap's under `allow_`, the others under `deny_`, and one that
/// its rate window counts under one that leads to the record of the window.
#[tokio::test]
async fn a_denial_has_the_id_and_the_plan_that_it_was_made_with() {
    for (answer, denial, prefix) in [
        ("daily_limit 1 8 free", Denial::DailyLimit, "allow_"),
        ("rate_limited 1 8 free", Denial::RateLimited, "deny_"),
        (
            "counted_in 1 8 1795000060000 rate_limited free",
            Denial::RateLimited,
            "deny_",
        ),
    ] {
        let (decided, voids) = decided(text(answer)).await;
        let denied = stopped(decided.unwrap_err());
        assert_eq!((denied.denial, voids), (denial, 0), "{answer}");
        assert!(denied.id.starts_with(prefix), "{answer}: {}", denied.id);
        assert_eq!(denied.run_id.as_deref(), Some("r"));
        assert_eq!(denied.estimate, Nanos::new(ESTIMATE));
        assert_eq!(denied.message, None);
        assert!(denied.plan.is_some(), "{answer}");
    }
    let owner = VirtualKeyOwner::new("acct_1", "bot", "vk_1");
    let ends_ms = clock::now_ms() + 30_000;
    let counted = decided(text(&format!("counted_in 1 8 {ends_ms} rate_limited free")))
        .await
        .0;
    let record = window(&owner, Denial::RateLimited, ends_ms).record_id();
    assert_eq!(record_of(&stopped(counted.unwrap_err()).id), Some(record));
}

#[tokio::test]
async fn a_run_too_many_says_so() {
    let (decided, voids) = decided(text("runs_full 1 8 free")).await;
    let denied = stopped(decided.unwrap_err());
    assert_eq!((denied.denial, voids), (Denial::RateLimited, 0));
    assert!(denied.message.unwrap().contains("budget of"));
}

/// The account's plan is learned from the store, at most so often within one call.
#[tokio::test]
async fn another_plan_is_asked_with_and_not_for_ever() {
    let stand = stands("other_plan 1 8 builder", true, 0).await;
    let stop = admit(&stand.gate, &stand.known()).await.unwrap_err();
    assert_eq!(stopped(stop).denial, Denial::ServiceUnavailable);
    let plans: Vec<String> = stand
        .arguments(&AUTHORIZE)
        .into_iter()
        .map(|args| args[1].clone())
        .collect();
    assert_eq!(plans, ["free", "builder", "builder"]);
}

/// The key was sealed for another agent, or by another master key.
#[tokio::test]
async fn a_provider_key_that_does_not_open_gives_the_estimate_back() {
    let stand = Stand::new().await;
    let gate = &stand.gate;
    assert!(gate.watch.usable(gate).await);
    stand.store_says(|command| match () {
        () if runs(command, &AUTHORIZE) => Some(text("ok 1 8 pk_1 c2VhbGVk free")),
        () => runs(command, &SETTLE).then(|| text("settled")),
    });
    let denied = stopped(decide(gate, &stand.known(), &stand.wanted()).await.unwrap_err());
    assert_eq!(denied.denial, Denial::ServiceUnavailable);
    assert_eq!(denied.estimate, Nanos::new(ESTIMATE));
    let settled = stand.arguments(&SETTLE);
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0][1..], [ESTIMATE.to_string().as_str(), "0", "unsent"]);
    // The entry in the audit trail has the same id, with the other prefix.
    assert_eq!(settled[0][0].replacen("allow_", "deny_", 1), denied.id);
}

/// A call whose price is beyond what can be counted is not asked for at all.
#[tokio::test]
async fn a_call_without_an_estimate_is_denied_without_asking() {
    let stand = stands("ok 1 8 pk_1 c2VhbGVk free", true, 0).await;
    let wanted = Wanted {
        estimate: None,
        ..stand.wanted()
    };
    let stop = decide(&stand.gate, &stand.known(), &wanted).await.unwrap_err();
    assert_eq!(stopped(stop).denial, Denial::ServiceUnavailable);
    assert!(stand.arguments(&AUTHORIZE).is_empty());
}

/// Of an account that is refused what makes records no call is within the rate.
#[test]
fn whoever_is_refused_has_no_request_left() {
    let plan = Plan {
        proxy_requests_per_minute: Some(30_000),
        cap_agents_per_month: Some(7),
        ..Plan::default()
    };
    let refused = without_requests(&plan);
    assert_eq!(refused.proxy_requests_per_minute, Some(0));
    assert_eq!(refused.cap_agents_per_month, plan.cap_agents_per_month);
}
