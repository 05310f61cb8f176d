//! A crowd whose holds grow before and after the gate.

use super::calls::{Call, charge, text_tokens};
use super::{Crowd, patient, roll};
use crate::fixture::{Actor, Fixture, HELD, open_cap, options};
use harness::{Edge, EdgeOptions, torture_seed};
use std::collections::HashMap;

const STREAMS: usize = 60;
/// `max_tokens` of some calls: less than their text has.
const LIMIT: u64 = 500;

fn growing(options: EdgeOptions) -> EdgeOptions {
    patient(options).env("TOLLGATE_PROXY__STREAM_EXTEND", "true")
}

/// The amount held for a call once `tokens` were seen: the fewest steps of which three quarters are more. With a limit
/// it grows once four times as much was seen.
fn held_for(call: Call, tokens: u64) -> u64 {
    let first = call.limit.unwrap_or(HELD);
    if call
        .limit
        .is_some_and(|limit| tokens < (limit * 4).max(limit + 256))
    {
        return first;
    }
    let mut all = (0..).map(|steps| first + steps * HELD);
    all.find(|held| tokens * 4 < held * 3).expect("enough")
}

/// Callers leave and providers break off at random, and one of two edges is killed, while holds grow. Each call is
/// charged by the rule, from what the provider recorded as sent and from what was held in the end.
#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_holds_grow_are_charged_by_the_rule() {
    let seed = torture_seed();
    let fixture = Fixture::with(growing).await;
    let doomed = Edge::start(growing(options(&fixture.redis, &fixture.upstream)));
    let actor = fixture.actor("enterprise", open_cap()).await;
    let mut calls = roll(seed, STREAMS);
    for (number, call) in calls.iter_mut().enumerate() {
        call.is_long = number % 10 < 7;
        call.limit = (number % 5 == 4).then_some(LIMIT);
    }
    let crowd = Crowd::start(&fixture, calls);
    let started = crowd.call(&actor, [fixture.edge.addr(), doomed.addr()]).await;
    assert_eq!(started.len(), STREAMS);
    let at_gate = |call: &Call| held_for(*call, call.tokens_before() as u64);
    let sum: u64 = crowd.calls.iter().map(at_gate).sum();
    let counters = actor.agent.counters().await;
    assert_eq!(counters.day_nanos, sum, "what passed is held");
    fixture.ledger_check().await.finds_nothing_wrong();

    let kept = crowd.play((&fixture, &actor), &doomed, started).await;
    assert!(kept.keys().all(|number| number % 2 == 1), "seed {seed}: {kept:?}");
    assert!(
        kept.values().any(|estimate| *estimate > HELD),
        "seed {seed}: holds that grew are left behind: {kept:?}"
    );
    let (sent, held) = (crowd.sent(&fixture), held(&fixture, &actor));
    let mut expected = HashMap::new();
    for (number, call) in crowd.calls.iter().enumerate() {
        let (sent, held) = (&sent[&number], held[&number]);
        // A hold grows no more once the edge is killed or the answer is over.
        let whole = call.script(&crowd.gates).bytes();
        let allowed = at_gate(call)..=held_for(*call, text_tokens(&whole));
        assert!(allowed.contains(&held), "seed {seed}: {number}, {call:?}, {held}");
        assert!(call.limit.is_some() || held % HELD == 0, "seed {seed}: {held}");
        let cost = match kept.get(&number) {
            Some(estimate) => {
                assert_eq!(*estimate, held, "seed {seed}: {number}, {call:?}");
                held
            }
            None => charge(sent, held),
        };
        expected.insert(number, cost);
    }
    crowd.is_charged((&fixture, &actor), &expected, seed).await;
}

/// Returns the final hold of each call, in nano-USD, by its line of the audit trail:
/// `… H <held> … <account> <agent> <run> …`.
fn held(fixture: &Fixture, actor: &Actor) -> HashMap<usize, u64> {
    let log = actor.agent.account.keys.live().audit();
    let lines: Vec<String> = fixture.redis.command(&["LRANGE", &log, "0", "-1"]);
    let held = lines.iter().map(|line| {
        let (_, hold) = line.split_once(" H ").expect("a hold");
        let mut words = hold.split(' ');
        let held = words.next().and_then(|held| held.parse().ok());
        let run = words.find_map(|word| word.strip_prefix("run-"));
        let number = run.and_then(|number| number.parse().ok());
        (number.expect("its run"), held.expect("an amount"))
    });
    held.collect()
}
