//! Run ids (specification §4.4, decisions D38, D62): who shares the per-run limit, and who does not. How long a run is
//! kept and counted is in `ledger/directed/runs.rs`, and through an edge in `record/dry_run.rs`.

use super::fixture::{Fixture, cap, estimated_body, open_cap};
use super::shape::{approved, denied, refused};
use std::collections::HashSet;

const RUN: &str = "x-service-run-id";

#[tokio::test]
async fn calls_of_one_run_share_its_limit_and_others_do_not() {
    let fixture = Fixture::new().await;
    fixture.estimates_stay();
    let account = fixture.seed.account("enterprise").await;
    let one = fixture
        .edge
        .equip(account.agent("one"), cap(Some(100), None, None))
        .await;
    let two = fixture
        .edge
        .equip(account.agent("two"), cap(Some(100), None, None))
        .await;
    let call = async |actor: &super::fixture::Actor, run: &str, nanos: u64| {
        actor.caller.chat_with(&[(RUN, run)], estimated_body(nanos)).await
    };
    assert_eq!(call(&one, "a", 100).await.status, 200);
    denied(&call(&one, "a", 1).await, "per_run_limit");
    let reply = call(&one, "b", 100).await;
    assert_eq!(reply.status, 200, "another run has a limit of its own");
    assert_eq!(call(&one, "A", 100).await.status, 200, "case counts");
    let reply = call(&two, "a", 100).await;
    assert_eq!(reply.status, 200, "another agent's run of the same name too");
    let key = one.agent.virtual_key().await;
    let reply = fixture
        .edge
        .caller(&key)
        .chat_with(&[(RUN, "a")], estimated_body(1))
        .await;
    denied(&reply, "per_run_limit");

    // A restarted agent keeps its spend, on any edge.
    let other = fixture.another_edge();
    let reply = other
        .caller(&one.key)
        .chat_with(&[(RUN, "a")], estimated_body(1))
        .await;
    denied(&reply, "per_run_limit");
    assert_eq!(one.agent.run_spent("a").await, Some(100));
    assert_eq!(one.agent.counters().await.day_nanos, 300);
}

#[tokio::test]
async fn without_a_run_id_every_call_is_its_own_run() {
    let fixture = Fixture::new().await;
    fixture.estimates_stay();
    let actor = fixture.actor("enterprise", cap(Some(100), None, None)).await;
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let reply = actor.caller.chat(estimated_body(100)).await;
        approved(&reply);
        let run = reply.header(RUN).expect("a run id").to_owned();
        assert_eq!(actor.agent.run_spent(&run).await, None, "nothing is kept of it");
        assert!(run.starts_with("req_") && seen.insert(run), "{reply:?}");
    }
    denied(&actor.caller.chat(estimated_body(101)).await, "per_run_limit");
}

#[tokio::test]
async fn a_run_id_has_1_to_200_plain_characters() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let longest = "Z".repeat(200);
    for good in ["a", "0", "A-Z.a_z:0-9", "req_mine", &longest] {
        let reply = actor.caller.chat_with(&[(RUN, good)], estimated_body(100)).await;
        assert_eq!((reply.status, reply.header(RUN)), (200, Some(good)));
    }
    let too_long = "Z".repeat(201);
    for bad in [
        "", " ", "a b", "a/b", "a,b", "{x}", "ü", "a\tb", "a@b", ".", "..", &too_long,
    ] {
        let reply = actor.caller.chat_with(&[(RUN, bad)], estimated_body(100)).await;
        refused(&reply, 400, "invalid_run_id");
    }
    let twice = [(RUN, "a"), (RUN, "b")];
    let reply = actor.caller.chat_with(&twice, estimated_body(100)).await;
    refused(&reply, 400, "invalid_run_id");
    let arrived = fixture.upstream.arrived();
    assert_eq!(arrived, 5, "a malformed run id is never forwarded");
    // Errors of the body precede those of the agent.
    let reply = actor
        .caller
        .chat_with(&[(RUN, "a b")], serde_json::json!({}))
        .await;
    refused(&reply, 400, "missing_model");
    actor.agent.frozen(true).await;
    let reply = actor.caller.chat_with(&[(RUN, "a b")], estimated_body(1)).await;
    refused(&reply, 400, "invalid_run_id");
}
