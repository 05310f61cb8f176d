//! The deliverer: gives webhooks that have something to deliver their turns, a bounded number at a time (decision D43).
//!
//! The dispatcher of the same process hints at new deliveries. Retries and deliveries of other servers are found by a
//! scan of the ready webhooks of all buckets, [`LOOKS_EVERY`] apart: one round trip of 1,024 short commands on a single
//! server, about 1 ms of its time; one round trip a bucket on a cluster. Several servers share the work, since a
//! webhook is leased by one at a time.
//!
//! Fairness: an account has at most one in [`ACCOUNT_PART`] of the places, webhooks whose last attempt failed have at
//! most three quarters of them, and a turn ends after some seconds. Hinted and scanned webhooks take turns. An account
//! with hanging receivers delays only its own deliveries.

use crate::base::Base;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::connection::batch::Batch;
use store::webhook::script::Endpoint;
use store::webhook::script::deliver::ready;
use store::{StoreError, server_clock};
use telemetry::error_chain;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use webhooks::Webhooks;
use webhooks::hints::Hints;
use webhooks::lease::{self, Outcome, farthest};

/// Pause between two looks at the store.
const LOOKS_EVERY: Duration = Duration::from_millis(250);
/// Looks between two for what is due too late, since the store's clock was set back.
const FAR_EVERY: u32 = 40;
/// Webhooks found in one bucket by one look, at most.
const FOUND_MAX: usize = 64;
/// The part of all places that one account can have.
const ACCOUNT_PART: usize = 8;
/// Failing webhooks remembered at most; those beyond count as healthy.
const FAILING_MAX: usize = 100_000;
/// Webhooks of a queue that are asked, each time that turns may begin, whether there is room for them.
const ASKED_MAX: usize = 1000;

/// The deliverer, with what it needs.
pub(super) struct Deliverer {
    pub(super) base: Arc<Base>,
    pub(super) webhooks: Arc<Webhooks>,
}

/// The places for turns, and who has them.
struct Places {
    all: usize,
    /// Turns that go on.
    turns: HashMap<Id, Endpoint>,
    busy: HashSet<Endpoint>,
    /// How many each account has.
    accounts: HashMap<String, usize>,
    /// Webhooks whose last attempt failed.
    failing: HashSet<Endpoint>,
    failing_busy: usize,
}

impl Places {
    fn new(all: usize) -> Self {
        Self {
            all: all.max(1),
            turns: HashMap::new(),
            busy: HashSet::new(),
            accounts: HashMap::new(),
            failing: HashSet::new(),
            failing_busy: 0,
        }
    }

    /// Whether a webhook may have its turn now.
    fn has_room(&self, endpoint: &Endpoint) -> bool {
        let of_account = self.accounts.get(&endpoint.account).copied().unwrap_or(0);
        let failing_most = (self.all * 3 / 4).max(1);
        self.busy.len() < self.all
            && of_account < (self.all / ACCOUNT_PART).max(1)
            && (!self.failing.contains(endpoint) || self.failing_busy < failing_most)
    }

    fn enter(&mut self, id: Id, endpoint: Endpoint) {
        *self.accounts.entry(endpoint.account.clone()).or_default() += 1;
        self.failing_busy += usize::from(self.failing.contains(&endpoint));
        self.busy.insert(endpoint.clone());
        self.turns.insert(id, endpoint);
    }

    /// `failing` is `None` when nothing was attempted, which says nothing of the receiver.
    fn leave(&mut self, id: Id, failing: Option<bool>) -> Option<Endpoint> {
        let endpoint = self.turns.remove(&id)?;
        self.busy.remove(&endpoint);
        self.failing_busy -= usize::from(self.failing.contains(&endpoint));
        if let Some(count) = self.accounts.get_mut(&endpoint.account) {
            *count -= 1;
            if *count == 0 {
                self.accounts.remove(&endpoint.account);
            }
        }
        match failing {
            Some(false) => {
                self.failing.remove(&endpoint);
            }
            Some(true) if self.failing.len() < FAILING_MAX => {
                self.failing.insert(endpoint.clone());
            }
            Some(true) | None => {}
        }
        Some(endpoint)
    }
}

/// Webhooks that wait for a turn.
#[derive(Default)]
struct Lines {
    /// Those that somebody said have something to deliver, and those whose turn ended with something left.
    said: Hints,
    /// Those that the last look found.
    found: VecDeque<Endpoint>,
    /// Which line has the next turn.
    found_first: bool,
}

/// How many of each line may still be asked.
struct Budget {
    said: usize,
    found: usize,
}

impl Lines {
    fn budget(&self) -> Budget {
        Budget {
            said: self.said.len().min(ASKED_MAX),
            found: self.found.len().min(ASKED_MAX),
        }
    }

    /// The next one that there is room for, of the two lines by turns. Those for which there is none go to the end,
    /// unless their turn goes on: then the look behind its end finds what is left.
    fn next(&mut self, places: &Places, budget: &mut Budget) -> Option<Endpoint> {
        for _ in 0..2 {
            let from_found = self.found_first;
            self.found_first = !from_found;
            let left = if from_found {
                &mut budget.found
            } else {
                &mut budget.said
            };
            while *left > 0 {
                *left -= 1;
                let first = if from_found {
                    self.found.pop_front()
                } else {
                    self.said.pop()
                };
                let Some(endpoint) = first else { break };
                if places.busy.contains(&endpoint) {
                    continue;
                }
                if places.has_room(&endpoint) {
                    return Some(endpoint);
                }
                if from_found {
                    self.found.push_back(endpoint);
                } else {
                    self.said.push(endpoint);
                }
            }
        }
        None
    }
}

/// Delivers until it is time to stop, and then until what is on its way has arrived. Several servers may do so at once.
pub(super) async fn run(worker: Deliverer, mut stopping: watch::Receiver<bool>) {
    let mut places = Places::new(worker.webhooks.settings.endpoints_at_once);
    let mut turns = JoinSet::new();
    let mut lines = Lines::default();
    let (mut looks, mut blind) = (0_u32, false);
    let mut next_look = Instant::now();
    loop {
        tokio::select! {
            () = stopped(&mut stopping) => break,
            () = worker.webhooks.hints.added() => {}
            () = tokio::time::sleep_until(next_look) => {
                next_look = Instant::now() + LOOKS_EVERY;
                looks = looks.wrapping_add(1);
                match look(&worker, &mut lines.found, looks.is_multiple_of(FAR_EVERY)).await {
                    Ok(()) => blind = false,
                    Err(error) => {
                        worker.webhooks.metrics.looks_failed.inc();
                        // The log hears of a row of them once.
                        if !blind {
                            tracing::error!(error = %error_chain(&error), "look for ready webhooks cut off");
                        }
                        blind = true;
                    }
                }
            }
            Some(ended) = turns.join_next_with_id() => {
                if let Some(again) = leave(&worker.webhooks, &mut places, ended) {
                    lines.said.push(again);
                }
            }
        }
        let mut fresh = worker.webhooks.hints.take();
        while let Some(endpoint) = fresh.pop() {
            lines.said.push(endpoint);
        }
        begin(&worker.webhooks, &stopping, &mut places, &mut turns, &mut lines);
        worker
            .webhooks
            .metrics
            .turns
            .set(i64::try_from(places.busy.len()).unwrap_or(i64::MAX));
    }
    while turns.join_next().await.is_some() {}
}

/// Waits until it is time to stop.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    drop(stopping.wait_for(|stop| *stop).await);
}

/// Begins the turns for which there is room.
fn begin(
    webhooks: &Arc<Webhooks>,
    stopping: &watch::Receiver<bool>,
    places: &mut Places,
    turns: &mut JoinSet<Result<Outcome, StoreError>>,
    lines: &mut Lines,
) {
    let mut budget = lines.budget();
    while places.busy.len() < places.all {
        let Some(endpoint) = lines.next(places, &mut budget) else {
            return;
        };
        let (webhooks, stopping, taken) = (Arc::clone(webhooks), stopping.clone(), endpoint.clone());
        let turn = turns.spawn(async move { lease::take(&webhooks, taken, &stopping).await });
        places.enter(turn.id(), endpoint);
    }
}

/// Takes in the end of a turn; the webhook when it has something left.
fn leave(
    webhooks: &Webhooks,
    places: &mut Places,
    ended: Result<(Id, Result<Outcome, StoreError>), tokio::task::JoinError>,
) -> Option<Endpoint> {
    let (id, outcome) = match ended {
        Ok((id, outcome)) => (id, outcome),
        Err(error) => {
            tracing::error!(%error, "a webhook's turn broke off");
            places.leave(error.id(), Some(true));
            return None;
        }
    };
    match outcome {
        Ok(outcome) => {
            let endpoint = places.leave(id, outcome.failing)?;
            outcome.unfinished.then_some(endpoint)
        }
        Err(error) => {
            let endpoint = places.leave(id, Some(true))?;
            webhooks.metrics.turns_failed.inc();
            let Endpoint {
                account,
                mode,
                webhook,
            } = endpoint;
            tracing::error!(account, %mode, webhook, error = %error_chain(&error), "a webhook's turn was cut off");
            None
        }
    }
}

/// Finds the webhooks that can be reached and whose time has come, those that waited longest first.
async fn look(worker: &Deliverer, line: &mut VecDeque<Endpoint>, far: bool) -> Result<(), StoreError> {
    if !worker.base.health.is_sound(&worker.base.store) {
        line.clear();
        return Ok(());
    }
    let now_ms = server_clock::now_ms(&worker.base.store).await?;
    let round = Batch::new(&worker.base.store);
    let mut found = ready(&round, "-inf", &now_ms.to_string(), FOUND_MAX).await;
    if far {
        let beyond = now_ms + u64::try_from(farthest(&worker.webhooks).as_millis()).unwrap_or(0);
        found.extend(ready(&round, &format!("({beyond}"), "+inf", FOUND_MAX).await);
    }
    found.sort_by_key(|(_, at_ms)| *at_ms);
    let lag_ms = found
        .first()
        .map_or(0, |(_, at_ms)| now_ms.saturating_sub(*at_ms));
    worker.webhooks.metrics.looked(found.len(), lag_ms);
    *line = found.into_iter().map(|(endpoint, _)| endpoint).collect();
    round.end()
}

#[cfg(test)]
mod tests;
