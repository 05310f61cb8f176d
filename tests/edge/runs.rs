//! Run ids (specification §4.4, decisions D38, D62): who shares the per-run limit, and who does not.

use super::shape::{approved, denied, refused};
use super::stage::{Stage, cap, estimated_body, open_cap};
use domain::mode::Mode;
use std::collections::HashSet;

const RUN: &str = "x-service-run-id";
const DAYS_35_MS: i64 = 35 * 24 * 3600 * 1000;

#[tokio::test]
async fn calls_of_one_run_share_its_limit_and_others_do_not() {
    let stage = Stage::new().await;
    stage.estimates_stay();
    let account = stage.seed.account("enterprise").await;
    let one = stage
        .equip(account.agent("one"), cap(Some(100), None, None))
        .await;
    let two = stage
        .equip(account.agent("two"), cap(Some(100), None, None))
        .await;
    let call = async |actor: &super::stage::Actor, run: &str, nanos: u64| {
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
    let reply = stage
        .edge
        .caller(&key)
        .chat_with(&[(RUN, "a")], estimated_body(1))
        .await;
    denied(&reply, "per_run_limit");

    // A restarted agent keeps its spend, on any edge.
    let other = stage.another_edge();
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
    let stage = Stage::new().await;
    stage.estimates_stay();
    let actor = stage.actor("enterprise", cap(Some(100), None, None)).await;
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
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
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
    let arrived = stage.upstream.arrived();
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

/// Run records are kept 35 days after their last call, and count approved calls only.
#[tokio::test]
async fn a_run_is_kept_35_days_after_its_last_call() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", cap(Some(100), None, None)).await;
    let record = actor.agent.account.keys.run(Mode::Live, "bot", "r");
    let call = || actor.caller.chat_with(&[(RUN, "r")], estimated_body(50));
    assert_eq!(call().await.status, 200);
    // The end is written with a run's first call of a minute, so it is a minute later than promised.
    let _: u64 = stage.redis.command(&["PEXPIRE", &record, "60000"]);
    let _: i64 = stage.redis.command(&["HINCRBY", &record, "last", "-60000"]);
    assert_eq!(call().await.status, 200);
    let left: i64 = stage.redis.command(&["PTTL", &record]);
    assert!((DAYS_35_MS..=DAYS_35_MS + 60_000).contains(&left), "{left}");
    let calls = || stage.redis.command::<u64>(&["HGET", &record, "calls"]);
    assert_eq!(calls(), 2);
    let reply = actor.caller.chat_with(&[(RUN, "r")], estimated_body(101)).await;
    denied(&reply, "per_run_limit");
    assert_eq!(calls(), 2, "a denied call is none");
    assert_eq!(actor.agent.run_spent("r").await, Some(24));
}

/// The records of an account's runs end 35 days after their last call, and the budget of runs with them (decisions D38,
/// D71): new runs are let in, the indexes forget the old ones, and an agent that is not called any more keeps none.
#[tokio::test]
async fn runs_that_ended_leave_the_budget() {
    let stage = Stage::with(|options| options.env("TOLLGATE_LIMITS__RUNS", "3")).await;
    let account = stage.seed.account("enterprise").await;
    let one = stage.equip(account.agent("one"), open_cap()).await;
    let two = stage.equip(account.agent("two"), open_cap()).await;
    let call = async |actor: &super::stage::Actor, run: &str| {
        actor.caller.chat_with(&[(RUN, run)], estimated_body(50)).await
    };
    for run in ["a", "b", "c"] {
        assert_eq!(call(&one, run).await.status, 200, "{run}");
    }
    for actor in [&one, &two] {
        denied(&call(actor, "d").await, "rate_limited");
    }
    // As if they had been called 35 days and two minutes ago: their records are gone, and the indexes still have them.
    let keys = &account.keys;
    let (all, of_one) = (keys.all_runs(Mode::Live), keys.runs(Mode::Live, "one"));
    let long_ago = (stage.now_ms() - DAYS_35_MS - 120_000).to_string();
    for run in ["a", "b", "c"] {
        let _: u64 = stage.redis.command(&["DEL", &keys.run(Mode::Live, "one", run)]);
        for (index, member) in [(&all, format!("one/{run}")), (&of_one, run.to_owned())] {
            let _: u64 = stage.redis.command(&["ZADD", index, &long_ago, &member]);
        }
    }
    let runs_of = |index: &str| stage.redis.command::<Vec<String>>(&["ZRANGE", index, "0", "-1"]);
    assert_eq!(runs_of(&all).len(), 3);
    for run in ["d", "e", "f"] {
        assert_eq!(call(&two, run).await.status, 200, "{run}");
    }
    denied(&call(&two, "g").await, "rate_limited");
    denied(&call(&one, "a").await, "rate_limited");
    assert_eq!(runs_of(&all), ["two/d", "two/e", "two/f"]);
    for index in [&all, &of_one, &keys.runs(Mode::Live, "two")] {
        let left: i64 = stage.redis.command(&["PTTL", index]);
        assert!((1..=DAYS_35_MS + 60_000).contains(&left), "{index}: {left}");
    }
}
