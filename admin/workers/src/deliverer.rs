//! The deliverer: gives turns to webhooks with pending deliveries, a bounded number concurrently (decision D43).
//!
//! The dispatcher of the same process hints at new deliveries. Retries and deliveries of other servers are found by a
//! scan of the ready webhooks of all buckets, every [`SCAN_EVERY`]: one round trip of 1,024 short commands on a single
//! server, about 1 ms of its time; one round trip per bucket on a cluster. Several servers share the work, since a
//! webhook is leased by one of them at a time.
//!
//! While the store cannot be trusted no turn begins, and waiting webhooks are forgotten: a later scan finds them.
//!
//! Fairness: an account has at most one in [`ACCOUNT_PART`] of the slots, webhooks whose last attempt failed have at
//! most three quarters of them, and a turn ends after some seconds. Hinted and scanned webhooks alternate. An account
//! with hanging receivers delays only its own deliveries.

use crate::context::WorkerContext;
use quick_cache::unsync::Cache;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::connection::batch::Batch;
use store::webhook::script::WebhookLocation;
use store::webhook::script::deliver::ready;
use store::{Store, StoreError, server_clock};
use telemetry::error_chain;
use telemetry::registrar::level;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use webhooks::Webhooks;
use webhooks::hints::Hints;
use webhooks::lease::{self, TurnOutcome, farthest};

/// Pause between two scans of the store.
const SCAN_EVERY: Duration = Duration::from_millis(250);
/// Every n-th scan also finds webhooks with due times too far ahead, because the store's clock was set back.
const FAR_SCAN_EVERY: u32 = 40;
/// Maximum number of webhooks that one scan finds in one bucket.
const FOUND_MAX: usize = 64;
/// Divisor for the share of one account in all slots.
const ACCOUNT_PART: usize = 8;
/// Quarters of the slots that failing webhooks may have.
const FAILING_QUARTERS: usize = 3;
/// Maximum number of failing webhooks remembered. Of more, those that failed long ago count as healthy: webhooks that
/// were deleted while they failed fill no place for ever.
const FAILING_MAX: usize = 100_000;
/// Maximum number of webhooks of each queue that are checked for room each time that turns may begin.
const CANDIDATES_MAX: usize = 1000;

/// The slots for concurrent turns, and the webhooks that occupy them.
struct Slots {
    all: usize,
    turns: HashMap<Id, TurnInProgress>,
    busy: HashSet<WebhookLocation>,
    /// Number of occupied slots of each account.
    accounts: HashMap<String, usize>,
    /// Webhooks whose last attempt failed.
    failing: Cache<WebhookLocation, ()>,
    failing_busy: usize,
}

struct TurnInProgress {
    endpoint: WebhookLocation,
    /// State of the webhook when its turn began.
    is_failing: bool,
}

impl Slots {
    fn new(all: usize) -> Self {
        Self {
            all: all.max(1),
            turns: HashMap::new(),
            busy: HashSet::new(),
            accounts: HashMap::new(),
            failing: Cache::new(FAILING_MAX),
            failing_busy: 0,
        }
    }

    /// Returns whether a webhook may have its turn now.
    fn has_room(&self, endpoint: &WebhookLocation) -> bool {
        let of_account = self.accounts.get(endpoint.realm.account()).copied().unwrap_or(0);
        let failing_most = (self.all * FAILING_QUARTERS / 4).max(1);
        keyed_limit::may_take(of_account, self.all.saturating_sub(self.busy.len()))
            && of_account < (self.all / ACCOUNT_PART).max(1)
            && (!self.is_failing(endpoint) || self.failing_busy < failing_most)
    }

    /// Returns whether the last attempt of a webhook failed.
    fn is_failing(&self, endpoint: &WebhookLocation) -> bool {
        self.failing.peek(endpoint).is_some()
    }

    fn enter(&mut self, id: Id, endpoint: WebhookLocation) {
        *self
            .accounts
            .entry(endpoint.realm.account().to_owned())
            .or_default() += 1;
        let is_failing = self.is_failing(&endpoint);
        self.failing_busy += usize::from(is_failing);
        self.busy.insert(endpoint.clone());
        self.turns.insert(id, TurnInProgress { endpoint, is_failing });
    }

    /// Frees the slot of a turn. `failing` is `None` if nothing was attempted, so that the receiver's state is
    /// unknown.
    fn leave(&mut self, id: Id, failing: Option<bool>) -> Option<WebhookLocation> {
        let TurnInProgress { endpoint, is_failing } = self.turns.remove(&id)?;
        self.busy.remove(&endpoint);
        self.failing_busy -= usize::from(is_failing);
        if let Some(count) = self.accounts.get_mut(endpoint.realm.account()) {
            *count -= 1;
            if *count == 0 {
                self.accounts.remove(endpoint.realm.account());
            }
        }
        match failing {
            Some(false) => {
                self.failing.remove(&endpoint);
            }
            Some(true) => self.failing.insert(endpoint.clone(), ()),
            None => {}
        }
        Some(endpoint)
    }
}

/// Webhooks that wait for a turn, in two queues that have turns alternately.
#[derive(Default)]
struct WebhookQueues {
    /// Webhooks named by hints, and those whose turn ended with deliveries left.
    hinted: Hints,
    /// Webhooks found by the last scan.
    scanned: VecDeque<WebhookLocation>,
    /// True if `scanned` has the next turn.
    scanned_first: bool,
}

/// Number of webhooks of each queue that may still be checked for room.
struct ChecksLeft {
    hinted: usize,
    scanned: usize,
}

impl WebhookQueues {
    /// Forgets all of them. Later scans find those that still have pending deliveries.
    fn clear(&mut self) {
        self.hinted = Hints::default();
        self.scanned.clear();
    }

    fn checks(&self) -> ChecksLeft {
        ChecksLeft {
            hinted: self.hinted.len().min(CANDIDATES_MAX),
            scanned: self.scanned.len().min(CANDIDATES_MAX),
        }
    }

    /// Returns the next webhook with room, from the two queues alternately. Webhooks without room go to the end of
    /// their queue. A webhook with a turn in progress is dropped: the end of that turn adds it again if deliveries are
    /// left.
    fn next(&mut self, slots: &Slots, checks: &mut ChecksLeft) -> Option<WebhookLocation> {
        for _ in 0..2 {
            let from_scan = self.scanned_first;
            self.scanned_first = !from_scan;
            let left = if from_scan {
                &mut checks.scanned
            } else {
                &mut checks.hinted
            };
            while *left > 0 {
                *left -= 1;
                let first = if from_scan {
                    self.scanned.pop_front()
                } else {
                    self.hinted.pop()
                };
                let Some(endpoint) = first else { break };
                if slots.busy.contains(&endpoint) {
                    continue;
                }
                if slots.has_room(&endpoint) {
                    return Some(endpoint);
                }
                if from_scan {
                    self.scanned.push_back(endpoint);
                } else {
                    self.hinted.push(endpoint);
                }
            }
        }
        None
    }
}

/// Delivers until the server stops, and then until the turns have ended. Several servers may do so concurrently.
pub(super) async fn run(
    context: Arc<WorkerContext>,
    webhooks: Arc<Webhooks>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut slots = Slots::new(webhooks.settings.endpoints_at_once);
    let mut turns = JoinSet::new();
    let mut queues = WebhookQueues::default();
    let (mut scans, mut scan_failed) = (0_u32, false);
    // State of the clock at the last scan: between two health checks of the store, no turn begins with a wrong clock.
    let mut clock_is_right = true;
    let mut next_scan = Instant::now();
    loop {
        tokio::select! {
            () = stopped(&mut stopping) => break,
            () = webhooks.hints.added() => {}
            () = tokio::time::sleep_until(next_scan) => {
                next_scan = Instant::now() + SCAN_EVERY;
                scans = scans.wrapping_add(1);
                let far = scans.is_multiple_of(FAR_SCAN_EVERY);
                match scan(&context, &webhooks, &mut queues.scanned, far, &mut clock_is_right).await {
                    Ok(()) => scan_failed = false,
                    Err(error) => {
                        webhooks.metrics.scans_failed.inc();
                        // Logged once for several consecutive failures.
                        if !scan_failed {
                            tracing::error!(error = %error_chain(&error), "the scan for ready webhooks failed");
                        }
                        scan_failed = true;
                    }
                }
            }
            Some(ended) = turns.join_next_with_id() => {
                if let Some(again) = leave(&webhooks, &mut slots, ended) {
                    queues.hinted.push(again);
                }
            }
        }
        let mut fresh = webhooks.hints.take();
        while let Some(endpoint) = fresh.pop() {
            queues.hinted.push(endpoint);
        }
        if clock_is_right && context.health.is_trusted(&context.store) {
            begin(&webhooks, &stopping, &mut slots, &mut turns, &mut queues);
        } else {
            queues.clear();
        }
        webhooks.metrics.turns.set(level(slots.busy.len()));
    }
    while turns.join_next().await.is_some() {}
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    drop(stopping.wait_for(|stop| *stop).await);
}

/// Begins the turns for which there is room.
fn begin(
    webhooks: &Arc<Webhooks>,
    stopping: &watch::Receiver<bool>,
    slots: &mut Slots,
    turns: &mut JoinSet<Result<TurnOutcome, StoreError>>,
    queues: &mut WebhookQueues,
) {
    let mut checks = queues.checks();
    while slots.busy.len() < slots.all {
        let Some(endpoint) = queues.next(slots, &mut checks) else {
            return;
        };
        let (webhooks, stopping, taken) = (Arc::clone(webhooks), stopping.clone(), endpoint.clone());
        let turn = turns.spawn(async move { lease::take(&webhooks, taken, &stopping).await });
        slots.enter(turn.id(), endpoint);
    }
}

/// Ends a turn. Returns its webhook if deliveries are left.
fn leave(
    webhooks: &Webhooks,
    slots: &mut Slots,
    ended: Result<(Id, Result<TurnOutcome, StoreError>), tokio::task::JoinError>,
) -> Option<WebhookLocation> {
    let (id, outcome) = match ended {
        Ok((id, outcome)) => (id, outcome),
        Err(error) => {
            tracing::error!(%error, "a webhook's turn panicked");
            slots.leave(error.id(), Some(true));
            return None;
        }
    };
    match outcome {
        Ok(outcome) => {
            let endpoint = slots.leave(id, outcome.failing)?;
            outcome.unfinished.then_some(endpoint)
        }
        Err(error) => {
            let endpoint = slots.leave(id, Some(true))?;
            webhooks.metrics.turns_failed.inc();
            let WebhookLocation { realm, webhook } = endpoint;
            let (account, mode) = (realm.account(), realm.mode());
            tracing::error!(account, %mode, webhook, error = %error_chain(&error), "a webhook's turn failed");
            None
        }
    }
}

/// Fills the queue with the due webhooks in the reachable buckets, longest waiting first.
async fn scan(
    context: &WorkerContext,
    webhooks: &Webhooks,
    queue: &mut VecDeque<WebhookLocation>,
    far: bool,
    clock_is_right: &mut bool,
) -> Result<(), StoreError> {
    if !context.health.is_trusted(&context.store) {
        return Ok(());
    }
    let now_ms = read_clock(&context.store, clock_is_right).await?;
    let batch = Batch::new(&context.store);
    let mut found = ready(&batch, "-inf", &now_ms.to_string(), FOUND_MAX).await;
    if far {
        let beyond = now_ms + u64::try_from(farthest(webhooks).as_millis()).unwrap_or(0);
        found.extend(ready(&batch, &format!("({beyond}"), "+inf", FOUND_MAX).await);
    }
    found.sort_by_key(|(_, at_ms)| *at_ms);
    let lag_ms = found
        .first()
        .map_or(0, |(_, at_ms)| now_ms.saturating_sub(*at_ms));
    webhooks.metrics.scanned(found.len(), lag_ms);
    *queue = found.into_iter().map(|(endpoint, _)| endpoint).collect();
    batch.end()
}

/// Reads the store's clock, in ms. Sets `is_right` to whether it could be read: reading a wrong clock is an error.
async fn read_clock(store: &Store, is_right: &mut bool) -> Result<u64, StoreError> {
    let read = server_clock::now_ms(store).await;
    *is_right = read.is_ok();
    read
}

#[cfg(test)]
mod tests;
