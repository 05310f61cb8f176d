//! The wire to the store is cut at the worst moments. A call whose decision was lost is denied, is not forwarded,
//! and costs nothing in the end (ARCHITECTURE.md, invariants 3 and 4).

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, SOON, body, sha};
use harness::{eventually, until};
use std::time::Duration;
use store::call::authorize::AUTHORIZE;
use store::call::settle::SETTLE;
use store::call::void::VOID;

#[tokio::test]
async fn a_decision_whose_reply_is_lost_is_taken_back() {
    let fixture = Fixture::wired().await;
    for round in 1..=5 {
        fixture.wire().lose_reply_to(sha(&AUTHORIZE), 1);
        fixture.unavailable_call().await;
        assert_eq!(fixture.wire().replies_lost(), round, "the script ran");
        fixture.settled_at(ACTUAL).await;
    }
    fixture.approved_call().await;
    fixture.settled_at(2 * ACTUAL).await;
}

/// The run's counter and its count of calls are taken back as well, as is a run that has no other call.
#[tokio::test]
async fn a_lost_decision_leaves_no_trace_in_its_run() {
    let fixture = Fixture::wired().await;
    let caller = fixture.edge.caller(&fixture.key);
    let run = [("x-service-run-id", "run-1")];
    assert_eq!(caller.chat_with(&run, body()).await.status, 200);
    fixture.wire().lose_reply_to(sha(&AUTHORIZE), 1);
    assert_eq!(caller.chat_with(&run, body()).await.status, 503);
    fixture.settled_at(2 * ACTUAL).await;
    assert_eq!(fixture.bot.run_spent("run-1").await, Some(ACTUAL));
    let key = fixture.bot.account.keys.live().run("bot", "run-1");
    assert_eq!(fixture.redis.command::<u64>(&["HGET", &key, "calls"]), 1);

    let run = [("x-service-run-id", "run-2")];
    fixture.wire().lose_reply_to(sha(&AUTHORIZE), 1);
    assert_eq!(caller.chat_with(&run, body()).await.status, 503);
    let runs = fixture.bot.account.keys.live();
    let places = [runs.runs("bot"), runs.all_runs()];
    let traces = || {
        let record: u64 = fixture.redis.command(&["EXISTS", &runs.run("bot", "run-2")]);
        let listed = places
            .each_ref()
            .map(|place| fixture.redis.command::<u64>(&["ZCARD", place]));
        (record, listed)
    };
    until("no trace of the run", async || traces() == (0, [1, 1])).await;
}

/// The agent's place in the plan is given back: another agent may take the only one.
#[tokio::test]
async fn a_lost_decision_leaves_no_agent_in_the_plan() {
    let fixture = Fixture::wired().await;
    let other = fixture.bot.account.agent("other");
    let (_, key) = other.ready(harness::open_cap()).await;
    let record = fixture.bot.account.keys.record();
    let slots = format!("n{}", fixture.redis.period().month);
    let taken = || fixture.redis.command::<Option<u64>>(&["HGET", &record, &slots]);
    let before = taken();
    fixture.wire().lose_reply_to(sha(&AUTHORIZE), 1);
    let caller = fixture.edge.caller(&key);
    assert_eq!(caller.chat_with(&[], body()).await.status, 503);
    until("the place", async || taken() == before).await;
    assert_eq!(other.settled_within(SOON).await, 0);
    assert_eq!(caller.chat_with(&[], body()).await.status, 200);
    assert_eq!(taken(), before.map(|places| places + 1));
}

#[tokio::test]
async fn a_question_that_never_arrived_costs_nothing() {
    let fixture = Fixture::wired().await;
    fixture.wire().swallow_requests(true);
    fixture.unavailable_call().await;
    fixture.wire().cut();
    fixture.wire().heal();
    fixture.settled_at(ACTUAL).await;
    fixture.lose_store();
    fixture.unavailable_call().await;
    fixture.wire().heal();
    fixture.settled_at(ACTUAL).await;
    fixture.recovered().await;
    fixture.settled_at(2 * ACTUAL).await;
}

/// The `authorize` request waits on the wire, the edge gives up, and then the request arrives and runs.
#[tokio::test]
async fn a_question_that_arrives_late_costs_nothing() {
    let fixture = Fixture::wired().await;
    let scripts_before = fixture.redis.calls("evalsha");
    fixture.wire().hold_requests();
    fixture.unavailable_call().await;
    assert_eq!(
        fixture.redis.calls("evalsha"),
        scripts_before,
        "it has not arrived"
    );
    fixture.wire().release_requests();
    fixture.settled_at(ACTUAL).await;
    assert!(fixture.redis.calls("evalsha") > scripts_before, "it has arrived");
    fixture.recovered().await;
    fixture.settled_at(2 * ACTUAL).await;
}

/// The void overtakes the `authorize` request, which is refused when it arrives, however late.
#[tokio::test]
async fn a_question_that_was_overtaken_by_its_void_is_refused() {
    let fixture = Fixture::wired().await;
    fixture.wire().hold_requests();
    let overtaking = async {
        until("the request", async || fixture.wire().is_holding()).await;
        fixture.wire().overtake_held_requests();
    };
    futures::future::join(fixture.unavailable_call(), overtaking).await;
    fixture.settled_at(ACTUAL).await;
    let scripts_before = fixture.redis.calls("evalsha");
    assert!(fixture.wire().is_holding(), "the request is still in transit");
    fixture.wire().release_requests();
    let arrived = async || (fixture.redis.calls("evalsha") > scripts_before).then_some(());
    eventually("the late request", SOON, arrived).await;
    fixture.settled_at(ACTUAL).await;
    fixture.recovered().await;
    fixture.settled_at(2 * ACTUAL).await;
}

#[tokio::test]
async fn a_void_whose_reply_is_lost_gives_back_once() {
    let fixture = Fixture::wired().await;
    // This loads the void's script into the store, so that the next void is sent by its hash.
    fixture.wire().lose_reply_to(sha(&AUTHORIZE), 1);
    fixture.unavailable_call().await;
    fixture.settled_at(ACTUAL).await;
    // The connection broke: the next call checks the store first, and the one after that only decides.
    fixture.approved_call().await;
    fixture.settled_at(2 * ACTUAL).await;
    fixture.wire().hold_requests();
    fixture.unavailable_call().await;
    fixture.wire().lose_reply_to(sha(&VOID), 3);
    fixture.wire().release_requests();
    fixture.settled_at(2 * ACTUAL).await;
    assert!(
        fixture.wire().replies_lost() >= 2,
        "the void's second or a later attempt succeeded"
    );
    fixture.recovered().await;
    fixture.settled_at(3 * ACTUAL).await;
}

/// The settlement ran and its reply was lost: it is repeated, and moves nothing the second time.
#[tokio::test]
async fn a_settlement_whose_reply_is_lost_counts_once() {
    let fixture = Fixture::wired().await;
    for round in 2..=4 {
        fixture.wire().lose_reply_to(sha(&SETTLE), 1);
        fixture.approved_call().await;
        fixture.settled_at(round * ACTUAL).await;
    }
    assert_eq!(fixture.wire().replies_lost(), 3);
    let missing = fixture.metric(r#"tollgate_proxy_settlements_total{result="missing"}"#);
    assert_eq!(missing, 3, "the second attempt found it done");
}

/// Many calls at once while replies are lost again and again.
#[tokio::test]
async fn answered_costs_equal_charged_costs() {
    let fixture = Fixture::wired().await;
    let losing = async {
        for script in [&*AUTHORIZE, &*SETTLE].into_iter().cycle().take(20) {
            fixture.wire().lose_reply_to(sha(script), 2);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        fixture.wire().heal();
    };
    let calls = (0..16).map(|_| async {
        let mut approved = 0;
        for _ in 0..20 {
            let reply = fixture.call().await;
            assert!(matches!(reply.status, 200 | 503), "{reply:?}");
            approved += u64::from(reply.status == 200);
        }
        approved
    });
    let (approved, ()) = futures::future::join(futures::future::join_all(calls), losing).await;
    let approved: u64 = 1 + approved.iter().sum::<u64>();
    fixture.settled_at(approved * ACTUAL).await;
    assert_eq!(
        fixture.upstream.arrived() as u64,
        approved,
        "one request for each approval"
    );
    assert!(
        fixture.wire().replies_lost() > 5,
        "{}",
        fixture.wire().replies_lost()
    );
}

/// The edge is killed before a decision reaches it: the hold stays charged, and visible.
#[tokio::test]
async fn an_undelivered_decision_stays_visible() {
    let fixture = Fixture::wired().await;
    fixture.wire().hold_requests();
    let call = fixture.call();
    let killed = async {
        until("the request", async || fixture.wire().is_holding()).await;
        fixture.edge.kill9();
    };
    let caller = fixture.edge.caller(&fixture.key);
    drop(call);
    let body = body().to_string();
    let (sent, ()) =
        futures::future::join(caller.try_send("POST", "/v1/chat/completions", &[], body), killed).await;
    assert!(sent.is_err(), "{sent:?}");
    fixture.wire().release_requests();
    let hold = async || (fixture.open_holds() == 1).then_some(());
    eventually("the hold", SOON, hold).await;
    assert_eq!(fixture.charged(), [ACTUAL + ESTIMATE; 3]);
    assert_eq!(fixture.upstream.arrived(), 1, "nothing was forwarded");
}
