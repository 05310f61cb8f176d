//! Many calls at once over two edges: exactly as many are approved as the limit has room for, to the nano. Each limit
//! by itself, with the agents and keys of a plan, is in `ledger/race.rs`.

use super::fixture::{Actor, Fixture, cap, estimated_body};
use harness::{Caller, CapPolicy, Edge};
use std::collections::HashMap;

/// The estimate of each call; the provider reports no usage, so it stays charged.
const ESTIMATE: u64 = 1_000_000;

struct Crowd {
    fixture: Fixture,
    other: Edge,
}

/// Number of answers by reason; `approved` is one of them.
type Tally = HashMap<String, usize>;

impl Crowd {
    async fn new() -> Self {
        let fixture = Fixture::alone().await;
        fixture.estimates_stay();
        let other = fixture.another_edge();
        Self { fixture, other }
    }

    fn callers(&self, actor: &Actor) -> [Caller; 2] {
        [actor.caller.clone(), self.other.caller(&actor.key)]
    }

    /// `count` calls at once, alternating between the edges.
    async fn rush(&self, callers: &[Caller], count: usize) -> Tally {
        let calls = (0..count).map(|number| {
            let caller = callers[number % callers.len()].clone();
            tokio::spawn(async move { caller.chat(estimated_body(ESTIMATE)).await })
        });
        let calls: Vec<_> = calls.collect();
        let mut tally = Tally::new();
        for call in calls {
            let reply = call.await.expect("an answer");
            let word = match reply.status {
                200 => "approved",
                _ => reply.header("x-service-reason").unwrap_or("no reason"),
            };
            *tally.entry(word.to_owned()).or_default() += 1;
        }
        tally
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_calls_share_a_daily_cap() {
    const CALLS: usize = 500;
    const ROOM: usize = 137;
    let crowd = Crowd::new().await;
    let policy = cap(None, Some(ROOM as u64 * ESTIMATE), None);
    let actor = crowd.fixture.actor("enterprise", policy).await;
    let before = crowd.fixture.upstream.arrived();
    let tally = crowd.rush(&crowd.callers(&actor), CALLS).await;
    let expected = [("approved", ROOM), ("daily_limit", CALLS - ROOM)];
    assert_eq!(
        tally,
        expected.map(|(word, count)| (word.to_owned(), count)).into()
    );
    let forwarded = crowd.fixture.upstream.arrived() - before;
    assert_eq!(forwarded, ROOM, "the provider saw the approved ones only");
    let charged = actor.agent.counters().await.day_nanos;
    assert_eq!(
        charged,
        ROOM as u64 * ESTIMATE,
        "the limit is used up to the nano"
    );
    assert_eq!(actor.agent.open_holds().await, 0);
}

/// Estimates of odd sizes against three caps at once: the sum of the approved ones never passes any of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mixed_estimates_never_pass_a_cap() {
    let crowd = Crowd::new().await;
    let policy: CapPolicy = cap(Some(3_000_017), Some(5_000_011), Some(4_000_037));
    let actor = crowd.fixture.actor("enterprise", policy).await;
    let callers = crowd.callers(&actor);
    let calls: Vec<_> = (0..400_u64)
        .map(|number| {
            let caller = callers[number as usize % 2].clone();
            tokio::spawn(async move {
                let (run, estimate) = (format!("run-{}", number % 2), 7_919 + number * 104_729 % 50_000);
                let reply = caller
                    .chat_with(&[("x-service-run-id", &run)], estimated_body(estimate))
                    .await;
                (reply.status == 200).then_some((number % 2, estimate))
            })
        })
        .collect();
    let mut approved = [0, 0];
    for call in calls {
        if let Some((run, estimate)) = call.await.expect("an answer") {
            approved[run as usize] += estimate;
        }
    }
    let counters = actor.agent.counters().await;
    let sum = approved[0] + approved[1];
    assert_eq!(
        [counters.day_nanos, counters.month_nanos, counters.tracked_nanos],
        [sum; 3]
    );
    assert!(
        sum <= 4_000_037 && sum > 4_000_037 - 58_000,
        "{sum}: the monthly cap is used as far as calls fit"
    );
    for (run, spent) in approved.iter().enumerate() {
        assert_eq!(actor.agent.run_spent(&format!("run-{run}")).await, Some(*spent));
        assert!(*spent <= 3_000_017, "run {run}: {spent}");
    }
}
