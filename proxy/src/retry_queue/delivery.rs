//! Delivery of queued items to the store. Each item is delivered only to the ledger that it belongs to.
//!
//! Before a batch the store must be safe and be that ledger (decision D47). After the batch it must still be that
//! ledger, without a lost connection in between: only then do the items leave the queue. A hold counts as missing only
//! if the script finds that the account's version is at least that of the hold's approval (decision D52). An item on
//! which the store's script fails repeatedly is given up: otherwise the queue would never become empty.

use super::RetryQueue;
use super::item::RetryItem;
use super::queue::{Queue, QueuePosition};
use crate::metrics::Metrics;
use crate::store_health::EdgeStoreHealth;
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::call::settle::Settled;
use store::call::void::{Voided, void};
use store::connection::batch::Batch;
use store::lost_connections::LostConnections;
use store::sanity::StoreRecord;
use store::{Store, StoreError};
use tokio::time::Instant;

const CONCURRENT_MAX: usize = 32;
/// Maximum number of settlements in one batch; the same number applies to voids.
const BATCH_MAX: usize = 1024;
/// An item is given up after this many identical script errors in a row, over at least [`SCRIPT_ERRORS_FOR`].
const SCRIPT_ERRORS_MAX: u32 = 100;
/// Minimum duration of identical script errors before an item is given up. Batches in which other items are delivered
/// follow each other without a pause, so the number of errors alone is no measure of time.
const SCRIPT_ERRORS_FOR: Duration = Duration::from_secs(20);
/// Pause before an account whose writes the store lacks is tried again.
const LACKING_WRITES_PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchOutcome {
    /// The store accepted at least one item.
    Delivered,
    /// The store accepted none.
    NotDelivered,
    /// All items belong to another ledger, or to accounts whose writes the store lacks.
    NothingDeliverable,
}

/// The store's reply to an item that it accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepted {
    Settled(Settled),
    Voided(Voided),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemOutcome {
    Accepted(Accepted),
    GivenUp,
    Waiting,
}

/// Delivers queued items.
pub(super) struct ItemDeliverer {
    store: Store,
    health: Arc<EdgeStoreHealth>,
    metrics: Arc<Metrics>,
    history: DeliveryHistory,
}

/// Results of earlier batches.
#[derive(Debug, Default)]
struct DeliveryHistory {
    script_errors: ScriptErrors,
    /// Accounts whose writes the store lacked, and when they are tried again.
    lacking_writes: HashMap<String, Instant>,
    /// Items that were accepted by a store that may no longer have been the ledger.
    uncertain: HashMap<RetryItem, Accepted>,
    /// Number of items that the queue had dropped when the history was last reduced to those that are queued.
    dropped: u64,
}

/// The last script error of each item.
#[derive(Debug, Default)]
struct ScriptErrors(HashMap<RetryItem, Repeated>);

/// A script error that occurred `times` times in a row.
#[derive(Debug)]
struct Repeated {
    error: String,
    times: u32,
    since: Instant,
}

impl ScriptErrors {
    /// Records an error; `script_error` is its text if the script failed. Returns whether the item is given up.
    fn record(&mut self, item: &RetryItem, script_error: Option<String>, now: Instant) -> bool {
        let Some(error) = script_error else {
            self.forget(item);
            return false;
        };
        let first = |error| Repeated {
            error,
            times: 1,
            since: now,
        };
        let is_final = match self.0.get_mut(item) {
            Some(last) if last.error == error => {
                last.times = last.times.saturating_add(1);
                last.times >= SCRIPT_ERRORS_MAX && now.duration_since(last.since) >= SCRIPT_ERRORS_FOR
            }
            Some(last) => {
                *last = first(error);
                false
            }
            None => {
                self.0.insert(item.clone(), first(error));
                false
            }
        };
        if is_final {
            self.forget(item);
        }
        is_final
    }

    fn forget(&mut self, item: &RetryItem) {
        self.0.remove(item);
    }
}

impl ItemDeliverer {
    pub(super) fn new(store: Store, health: Arc<EdgeStoreHealth>, metrics: Arc<Metrics>) -> Self {
        Self {
            store,
            health,
            metrics,
            history: DeliveryHistory::default(),
        }
    }

    /// Delivers one batch. Items on a server that does not reply are left for the next one.
    pub(super) async fn deliver_batch(&mut self, retry_queue: &RetryQueue) -> BatchOutcome {
        let lost_connections = LostConnections::count();
        let Some(ledger) = self.health.read_ledger().await else {
            return BatchOutcome::NotDelivered;
        };
        let now = Instant::now();
        let lacking_writes = &mut self.history.lacking_writes;
        lacking_writes.retain(|_, again| *again > now);
        let is_deliverable =
            |item: &RetryItem| item.is_of(&ledger.epoch) && !lacking_writes.contains_key(item.account());
        let (batch, undeliverable) = retry_queue.queue().batch(BATCH_MAX, is_deliverable);
        retry_queue.elsewhere.store(undeliverable, Ordering::Relaxed);
        if batch.is_empty() {
            return BatchOutcome::NothingDeliverable;
        }
        let replies = self.deliver_all(batch).await;
        // A reply is certain only if it came from the ledger that was checked before the batch.
        let is_certain = self.is_same_ledger(&ledger, lost_connections).await;
        let mut result = BatchOutcome::NotDelivered;
        let now = Instant::now();
        for (position, item, reply) in replies {
            let outcome = self.history.apply(
                &mut retry_queue.queue(),
                (position, &item),
                reply,
                is_certain,
                now,
            );
            match outcome {
                ItemOutcome::Accepted(accepted) => {
                    result = BatchOutcome::Delivered;
                    record(&self.metrics, &item, accepted);
                }
                ItemOutcome::GivenUp => drop(retry_queue.dropped.fetch_add(1, Ordering::Relaxed)),
                ItemOutcome::Waiting => {}
            }
        }
        let queue = retry_queue.queue();
        self.history.forget_dropped(retry_queue.dropped(), &queue);
        if queue.is_empty() {
            retry_queue.outdated.notify_one();
        }
        result
    }

    /// Sends items to the store, and returns each with its reply. The reply is `None` if the item was not sent: its
    /// server is unreachable, or the store lacks writes of its account.
    async fn deliver_all(
        &mut self,
        batch: Vec<(QueuePosition, RetryItem)>,
    ) -> Vec<(QueuePosition, RetryItem, Option<Result<Accepted, StoreError>>)> {
        let servers = &Batch::new(&self.store);
        let store = &self.store;
        let lacking_writes = &Mutex::new(&mut self.history.lacking_writes);
        futures::stream::iter(batch)
            .map(|(position, item)| async move {
                let lacking_writes = || lacking_writes.lock();
                let bucket = item.bucket();
                if servers.is_unreachable(bucket) || lacking_writes().contains_key(item.account()) {
                    return (position, item, None);
                }
                let reply = deliver(store, &item).await;
                match &reply {
                    Err(StoreError::LacksWrites) => {
                        tracing::error!(
                            account = item.account(),
                            "the store lost writes of this account; its settlements and voids stay queued"
                        );
                        let again = Instant::now() + LACKING_WRITES_PAUSE;
                        lacking_writes().insert(item.account().to_owned(), again);
                    }
                    Err(error) => servers.note_error(bucket, error),
                    Ok(_) => {}
                }
                (position, item, Some(reply))
            })
            .buffer_unordered(CONCURRENT_MAX)
            .collect()
            .await
    }

    /// Returns whether the store is `ledger`, and no connection to it broke since `lost_connections` was read. In a
    /// cluster a lost connection does not count: it concerns one node. If a replica that lacks writes replaced the
    /// master, the script detects it.
    async fn is_same_ledger(&self, ledger: &StoreRecord, lost_connections: u64) -> bool {
        let now = self.health.read_ledger().await;
        now.is_some_and(|now| now.epoch == ledger.epoch)
            && !LostConnections::since(lost_connections, &self.store)
    }
}

impl DeliveryHistory {
    /// Forgets the items that are no longer queued, if any were dropped: no reply removes them.
    fn forget_dropped(&mut self, dropped: u64, queue: &Queue) {
        if dropped == self.dropped {
            return;
        }
        self.dropped = dropped;
        if !self.script_errors.0.is_empty() || !self.uncertain.is_empty() {
            let queued: HashSet<&RetryItem> = queue.items().collect();
            self.script_errors.0.retain(|item, _| queued.contains(item));
            self.uncertain.retain(|item, _| queued.contains(item));
        }
    }

    /// Removes an item from the queue or puts it back, by the store's reply.
    fn apply(
        &mut self,
        queue: &mut Queue,
        (position, item): (QueuePosition, &RetryItem),
        reply: Option<Result<Accepted, StoreError>>,
        is_certain: bool,
        now: Instant,
    ) -> ItemOutcome {
        match reply {
            Some(Ok(accepted)) if is_certain => {
                self.script_errors.forget(item);
                queue.remove(position);
                // If the store has no such hold now, the earlier, uncertain delivery reached this ledger and ended the
                // hold. The reply to that delivery is then the outcome.
                let before = self.uncertain.remove(item);
                let is_missing = accepted == Accepted::Settled(Settled::Missing);
                ItemOutcome::Accepted(before.filter(|_| is_missing).unwrap_or(accepted))
            }
            Some(Ok(accepted)) => {
                self.uncertain.entry(item.clone()).or_insert(accepted);
                queue.put_back(position);
                ItemOutcome::Waiting
            }
            Some(Err(error)) if self.script_errors.record(item, error.broken_script(), now) => {
                let said = error.broken_script();
                tracing::error!(
                    ?item,
                    said,
                    "the store's script fails on it; it is dropped from the queue, and its estimate stays charged"
                );
                queue.remove(position);
                ItemOutcome::GivenUp
            }
            Some(Err(_)) | None => {
                queue.put_back(position);
                ItemOutcome::Waiting
            }
        }
    }
}

/// Executes the script of an item. Both scripts are idempotent, so repeated delivery is harmless.
async fn deliver(store: &Store, item: &RetryItem) -> Result<Accepted, StoreError> {
    let as_of = item.as_of();
    match item.to_settle() {
        Some(settle) => {
            let settled = settle.execute(&settle.name.keys(), Some(as_of), store).await;
            settled.map(Accepted::Settled)
        }
        None => void(store, &item.name(), as_of).await.map(Accepted::Voided),
    }
}

/// Records an accepted item in metrics and log.
fn record(metrics: &Metrics, item: &RetryItem, accepted: Accepted) {
    let id = &item.name().allow_id;
    match (accepted, item.to_settle()) {
        (Accepted::Settled(settled), Some(settle)) => {
            metrics.ledger.settled(settled, &settle);
            tracing::info!(decision.id = id, charged.usd = %settle.cost, "the store accepted a queued settlement");
        }
        (Accepted::Voided(voided), _) => {
            metrics.ledger.voided(voided);
            if voided == Voided::Refunded {
                tracing::warn!(decision.id = id, "a lost approval was given back");
            }
        }
        (Accepted::Settled(_), None) => {}
    }
}

#[cfg(test)]
mod tests;
