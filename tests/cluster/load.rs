//! Callers that do not stop, and the outcome of each of their calls.

use crate::fixture::{COST, Fixture, Resident, call};
use harness::until;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Pause of a caller between two calls: the store and the edges share two cores with the tests.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks in a row that must show the same before it counts as the end.
const STABLE_LOOKS: usize = 50;

/// One call.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub resident: usize,
    pub edge: usize,
    pub name: String,
    pub at: Instant,
    pub took: Duration,
    /// `approved`, or the reason of the denial.
    pub word: String,
}

/// Tasks that call until they are stopped.
pub struct Load {
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
    edges: usize,
}

impl Load {
    /// One caller for each resident and edge.
    pub fn start(fixture: &Fixture, residents: &[Resident]) -> Self {
        static NAMES: AtomicUsize = AtomicUsize::new(0);
        let mut load = Self {
            outcomes: Arc::default(),
            stop: Arc::default(),
            callers: Vec::new(),
            edges: fixture.edges.len(),
        };
        for (at, resident) in residents.iter().enumerate() {
            for (edge, server) in fixture.edges.iter().enumerate() {
                let caller = server.caller(&resident.key);
                let (outcomes, stop) = (Arc::clone(&load.outcomes), Arc::clone(&load.stop));
                load.callers.push(tokio::spawn(async move {
                    while !stop.load(Ordering::SeqCst) {
                        let name = format!("call {}", NAMES.fetch_add(1, Ordering::Relaxed));
                        let began = Instant::now();
                        let reply = caller.chat(call(&name)).await;
                        let word = match reply.status {
                            200 => "approved".to_owned(),
                            status => reply
                                .header("x-service-reason")
                                .map_or_else(|| status.to_string(), str::to_owned),
                        };
                        let outcome = Outcome {
                            resident: at,
                            edge,
                            name,
                            at: began,
                            took: began.elapsed(),
                            word,
                        };
                        outcomes.lock().push(outcome);
                        tokio::time::sleep(PAUSE).await;
                    }
                }));
            }
        }
        load
    }

    pub fn so_far(&self) -> Vec<Outcome> {
        self.outcomes.lock().clone()
    }

    /// Waits until each of these residents has `count` approvals, on each edge, of calls that began after `since`.
    pub async fn approvals(&self, residents: &[usize], count: usize, since: Instant) {
        until("approvals", async || {
            let outcomes = self.so_far();
            let approved = |resident: usize, edge: usize| {
                let of = outcomes
                    .iter()
                    .filter(|outcome| outcome.resident == resident && outcome.edge == edge);
                of.filter(|outcome| outcome.at >= since && outcome.word == "approved")
                    .count()
            };
            let enough = |resident: &usize| (0..self.edges).all(|edge| approved(*resident, edge) >= count);
            residents.iter().all(enough)
        })
        .await;
    }

    /// Ends it, and waits for the last answers.
    pub async fn end(mut self) -> Vec<Outcome> {
        self.stop.store(true, Ordering::SeqCst);
        for caller in std::mem::take(&mut self.callers) {
            caller.await.expect("a caller");
        }
        self.so_far()
    }
}

/// A failing test stops its edges; the errors of its callers would hide the cause.
impl Drop for Load {
    fn drop(&mut self) {
        for caller in &self.callers {
            caller.abort();
        }
    }
}

/// Number of arrivals of each call at the provider.
fn arrivals(fixture: &Fixture) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    for request in fixture.upstream.requests() {
        let body: serde_json::Value = serde_json::from_slice(&request.body).expect("a body");
        let name = body["messages"][0]["content"]
            .as_str()
            .expect("a name")
            .to_owned();
        *found.entry(name).or_default() += 1;
    }
    found
}

/// Nothing reached the provider twice or without an approval; returns how many calls of each resident did.
pub fn forwarded(fixture: &Fixture, residents: usize, outcomes: &[Outcome]) -> Vec<u64> {
    let arrivals = arrivals(fixture);
    let mut of = vec![0; residents];
    for outcome in outcomes {
        let arrived = arrivals.get(&outcome.name).copied().unwrap_or(0);
        let approved = outcome.word == "approved";
        assert_eq!(arrived, usize::from(approved), "{outcome:?}");
        of[outcome.resident] += arrived as u64;
    }
    assert_eq!(
        of.iter().sum::<u64>(),
        arrivals.values().sum::<usize>() as u64,
        "calls of nobody"
    );
    of
}

/// Waits until nothing of this resident is under way; returns how many of its `calls` calls are charged in the end.
pub async fn charged(fixture: &Fixture, resident: &Resident, calls: u64) -> u64 {
    fixture.found_again(&resident.agent.account.keys.record()).await;
    let (mut last, mut same) = (None, 0);
    until("an end of what is under way", async || {
        let counters = resident.agent.counters().await;
        let quiet =
            fixture.edges.iter().map(pending).sum::<u64>() == 0 && resident.agent.open_holds().await == 0;
        same = if last == Some(counters) && quiet {
            same + 1
        } else {
            0
        };
        last = Some(counters);
        let exact = counters.day_nanos == calls * COST;
        quiet && (exact || same > STABLE_LOOKS)
    })
    .await;
    let counters = last.expect("a look");
    assert_eq!(counters.month_nanos, counters.day_nanos);
    assert_eq!(counters.tracked_nanos, counters.day_nanos);
    assert_eq!(
        counters.day_nanos % COST,
        0,
        "whole calls are charged: {counters:?}"
    );
    counters.day_nanos / COST
}

fn pending(edge: &harness::Edge) -> u64 {
    edge.metric("tollgate_proxy_pending")
        .expect("how much is pending")
}

/// The longest time in which none of this resident's calls was approved: between the beginnings of two approved ones.
pub fn gap(outcomes: &[Outcome], resident: usize) -> Duration {
    let mut approved: Vec<Instant> = outcomes
        .iter()
        .filter(|outcome| outcome.resident == resident && outcome.word == "approved")
        .map(|outcome| outcome.at + outcome.took)
        .collect();
    approved.sort_unstable();
    let pairs = approved.windows(2).map(|pair| pair[1] - pair[0]);
    pairs.max().unwrap_or_default()
}

/// Number of answers to a resident, by word.
pub fn words(outcomes: &[Outcome], resident: usize) -> HashMap<&str, usize> {
    let mut words = HashMap::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.resident == resident) {
        *words.entry(outcome.word.as_str()).or_default() += 1;
    }
    words
}
