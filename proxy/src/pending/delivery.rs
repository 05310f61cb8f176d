//! Delivery of queued items to the store. Each item is delivered only to the ledger that it belongs to.
//!
//! Before a batch the store must be safe and be that ledger (decision D47). After the batch it must still be that
//! ledger, without a lost connection in between: only then do the items leave the queue. A hold counts as missing only
//! if the script finds that the account's version is at least that of the hold's approval (decision D52). An item on
//! which the store's script fails repeatedly is given up: otherwise the queue would never become empty.

use super::Pending;
use super::item::Item;
use super::queue::{Position, Queue};
use crate::metrics::Metrics;
use crate::store_health::StoreHealth;
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::HashMap;
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

/// Maximum number of concurrent deliveries.
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

/// Outcome of a batch.
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

/// Outcome of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Accepted(Accepted),
    GivenUp,
    Waiting,
}

/// Delivers queued items.
pub(super) struct Delivery {
    store: Store,
    health: Arc<StoreHealth>,
    metrics: Arc<Metrics>,
    history: History,
}

/// Results of earlier batches.
#[derive(Debug, Default)]
struct History {
    script_errors: ScriptErrors,
    /// Accounts whose writes the store lacked, and when they are tried again.
    lacking_writes: HashMap<String, Instant>,
    /// Items that were accepted by a store that may no longer have been the ledger.
    uncertain: HashMap<Item, Accepted>,
}

/// The last script error of each item.
#[derive(Debug, Default)]
struct ScriptErrors(HashMap<Item, Repeated>);

/// A script error that occurred `times` times in a row.
#[derive(Debug)]
struct Repeated {
    error: String,
    times: u32,
    since: Instant,
}

impl ScriptErrors {
    /// Records an error; `script_error` is its text if the script failed. Returns whether the item is given up.
    fn is_final(&mut self, item: &Item, script_error: Option<String>, now: Instant) -> bool {
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

    fn forget(&mut self, item: &Item) {
        self.0.remove(item);
    }
}

impl Delivery {
    pub(super) fn new(store: Store, health: Arc<StoreHealth>, metrics: Arc<Metrics>) -> Self {
        Self {
            store,
            health,
            metrics,
            history: History::default(),
        }
    }

    /// Delivers one batch. Items on a server that does not reply are left for the next one.
    pub(super) async fn deliver_batch(&mut self, pending: &Pending) -> BatchOutcome {
        let lost_connections = LostConnections::count();
        let Some(ledger) = self.health.read_ledger().await else {
            return BatchOutcome::NotDelivered;
        };
        let now = Instant::now();
        let lacking_writes = &mut self.history.lacking_writes;
        lacking_writes.retain(|_, again| *again > now);
        let is_deliverable =
            |item: &Item| item.is_of(&ledger.epoch) && !lacking_writes.contains_key(item.account());
        let (batch, undeliverable) = pending.queue().batch(BATCH_MAX, is_deliverable);
        pending.elsewhere.store(undeliverable, Ordering::Relaxed);
        if batch.is_empty() {
            return BatchOutcome::NothingDeliverable;
        }
        let replies = self.deliver_all(batch).await;
        // A reply is certain only if it came from the ledger that was checked before the batch.
        let is_certain = self.is_still(&ledger, lost_connections).await;
        let mut result = BatchOutcome::NotDelivered;
        let now = Instant::now();
        for (position, item, reply) in replies {
            let outcome = self
                .history
                .apply(&mut pending.queue(), (position, &item), reply, is_certain, now);
            match outcome {
                Outcome::Accepted(accepted) => {
                    result = BatchOutcome::Delivered;
                    record(&self.metrics, &item, accepted);
                }
                Outcome::GivenUp => drop(pending.dropped.fetch_add(1, Ordering::Relaxed)),
                Outcome::Waiting => {}
            }
        }
        let queue = pending.queue();
        if queue.is_empty() {
            self.history.uncertain.clear();
            pending.journal().clear();
        }
        result
    }

    /// Sends items to the store, and returns each with its reply. The reply is `None` if the item was not sent: its
    /// server is unreachable, or the store lacks writes of its account.
    async fn deliver_all(
        &mut self,
        batch: Vec<(Position, Item)>,
    ) -> Vec<(Position, Item, Option<Result<Accepted, StoreError>>)> {
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
                            "the store lost writes of this account; what waits for it waits on"
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
    async fn is_still(&self, ledger: &StoreRecord, lost_connections: u64) -> bool {
        let now = self.health.read_ledger().await;
        now.is_some_and(|now| now.epoch == ledger.epoch)
            && !LostConnections::since(lost_connections, &self.store)
    }
}

impl History {
    /// Removes an item from the queue or puts it back, by the store's reply.
    fn apply(
        &mut self,
        queue: &mut Queue,
        (position, item): (Position, &Item),
        reply: Option<Result<Accepted, StoreError>>,
        is_certain: bool,
        now: Instant,
    ) -> Outcome {
        match reply {
            Some(Ok(accepted)) if is_certain => {
                self.script_errors.forget(item);
                queue.remove(position);
                // If the store has no such hold now, the earlier, uncertain delivery reached this ledger and ended the
                // hold. The reply to that delivery is then the outcome.
                let before = self.uncertain.remove(item);
                let is_missing = accepted == Accepted::Settled(Settled::Missing);
                Outcome::Accepted(before.filter(|_| is_missing).unwrap_or(accepted))
            }
            Some(Ok(accepted)) => {
                self.uncertain.entry(item.clone()).or_insert(accepted);
                queue.put_back(position);
                Outcome::Waiting
            }
            Some(Err(error)) if self.script_errors.is_final(item, error.broken_script(), now) => {
                let said = error.broken_script();
                tracing::error!(
                    ?item,
                    said,
                    "the store's script breaks off on it; it waits no longer, and what is charged stays"
                );
                queue.remove(position);
                Outcome::GivenUp
            }
            Some(Err(_)) | None => {
                queue.put_back(position);
                Outcome::Waiting
            }
        }
    }
}

/// Executes the script of an item. Both scripts are idempotent, so repeated delivery is harmless.
async fn deliver(store: &Store, item: &Item) -> Result<Accepted, StoreError> {
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
fn record(metrics: &Metrics, item: &Item, accepted: Accepted) {
    let id = &item.name().allow_id;
    match (accepted, item.to_settle()) {
        (Accepted::Settled(settled), Some(settle)) => {
            metrics.ledger.settled(settled, &settle);
            tracing::info!(decision.id = id, charged.usd = %settle.cost, "a settlement that waited was taken");
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
mod tests {
    use super::super::journal::tests::item as void;
    use super::*;
    use crate::fixture::{EPOCH, Fixture, Reply, runs, text};
    use store::call::hold::AsOf;
    use store::call::settle::SETTLE;
    use store::call::void::VOID;

    const MISSING: Accepted = Accepted::Settled(Settled::Missing);
    const DONE: Accepted = Accepted::Settled(Settled::Done);

    /// Builds an error reply of the server.
    fn server_error(line: &str) -> StoreError {
        let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        let error = answer.and_then(redis::Value::extract_error).unwrap_err();
        StoreError::from(error)
    }

    /// Interval of deliveries at which the errors last as long as required when they are as many as required.
    fn interval() -> Duration {
        SCRIPT_ERRORS_FOR / (SCRIPT_ERRORS_MAX - 1)
    }

    /// Returns the outcomes of a queue with one item, given the store's reply to each delivery, until the item leaves
    /// the queue.
    fn outcomes(answers: impl IntoIterator<Item = (Result<Accepted, StoreError>, bool)>) -> Vec<Outcome> {
        let (mut history, mut queue) = (History::default(), Queue::new(1));
        queue.push(void("allow_1"));
        let (mut outcomes, mut now) = (Vec::new(), Instant::now());
        for (answer, is_certain) in answers {
            now += interval() + Duration::from_nanos(100);
            let (mut batch, _) = queue.batch(1, |_| true);
            let Some((position, item)) = batch.pop() else {
                break;
            };
            outcomes.push(history.apply(&mut queue, (position, &item), Some(answer), is_certain, now));
            let is_waiting = *outcomes.last().unwrap() == Outcome::Waiting;
            assert_eq!(queue.is_empty(), !is_waiting);
        }
        assert!(!queue.is_empty() || (history.script_errors.0.is_empty() && history.uncertain.is_empty()));
        outcomes
    }

    fn delivery(fixture: &Fixture) -> Delivery {
        let (health, metrics) = (Arc::clone(&fixture.health), Arc::clone(&fixture.metrics));
        Delivery::new(fixture.store.clone(), health, metrics)
    }

    /// Returns errors of a store that is unreachable or refuses commands.
    fn temporary_errors() -> Vec<fn() -> StoreError> {
        vec![
            || StoreError::NoAnswer(None),
            || StoreError::NoAnswer(Some(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())),
            || StoreError::NotConnected(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()),
            || StoreError::LacksWrites,
            || StoreError::unexpected("settle"),
            || server_error("OOM command not allowed when used memory > 'maxmemory'."),
            || server_error("LOADING Redis is loading the dataset in memory"),
            || {
                server_error(
                    "READONLY You can't write against a read only replica. script: abc, on @user_script:1.",
                )
            },
            || server_error("ERR max number of clients reached"),
        ]
    }

    fn settlement(epoch: &str) -> Item {
        Item::Settle {
            name: ["acct_1", "bot", "r", "allow_2"].map(str::to_owned),
            estimate_nanos: 100,
            cost_nanos: 170,
            how: Some("settled".to_owned()),
            extension_nanos: None,
            measured: None,
            epoch: Some(epoch.to_owned()),
            as_of: AsOf::default(),
        }
    }

    #[tokio::test]
    async fn accepted_items_leave_queue_and_journal_and_are_counted_once() {
        let fixture = Fixture::new().await;
        let pending = &fixture.pending;
        pending.push(void("allow_1"));
        pending.push(settlement(EPOCH));
        let mut delivery = delivery(&fixture);
        assert_eq!(
            delivery.deliver_batch(pending).await,
            BatchOutcome::NotDelivered,
            "the store replies with errors"
        );
        assert_eq!((pending.len(), pending.journal_lines()), (2, 2));
        fixture.on_command(|command| match () {
            () if runs(command, &SETTLE) => Some(text("settled")),
            () => runs(command, &VOID).then(|| Reply::Raw("*1\r\n$8\r\nrefunded\r\n".to_owned())),
        });
        assert_eq!(delivery.deliver_batch(pending).await, BatchOutcome::Delivered);
        assert_eq!(
            (pending.len(), pending.journal_lines(), pending.dropped()),
            (0, 0, 0)
        );
        assert_eq!(
            fixture.arguments(&SETTLE)[0][..4],
            ["allow_2", "100", "170", "settled"]
        );
        let shown = fixture.registrar.text().unwrap();
        for line in [
            "settlements_total{result=\"done\"} 1",
            "voids_total{result=\"refunded\"} 1",
            "charged_nanos_total 170",
        ] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
    }

    #[tokio::test]
    async fn items_of_another_ledger_or_of_lost_writes_wait() {
        let fixture = Fixture::new().await;
        let pending = &fixture.pending;
        fixture.on_command(|command| runs(command, &SETTLE).then(|| text("lacks_writes")));
        pending.push(settlement("another"));
        let mut delivery = delivery(&fixture);
        assert_eq!(
            delivery.deliver_batch(pending).await,
            BatchOutcome::NothingDeliverable
        );
        assert_eq!((pending.len(), pending.elsewhere()), (1, 1));
        pending.push(settlement(EPOCH));
        assert_eq!(delivery.deliver_batch(pending).await, BatchOutcome::NotDelivered);
        // The account is not tried again immediately.
        assert_eq!(
            delivery.deliver_batch(pending).await,
            BatchOutcome::NothingDeliverable
        );
        assert_eq!(fixture.arguments(&SETTLE).len(), 1);
        assert_eq!((pending.len(), pending.elsewhere()), (2, 2));
    }

    #[test]
    fn an_outage_drops_nothing_however_long_it_is() {
        for error in temporary_errors() {
            let answers = (0..3 * SCRIPT_ERRORS_MAX).map(|_| (Err(error()), true));
            let outcomes = outcomes(answers);
            assert_eq!(outcomes.len(), 300, "{:?}", error());
            assert!(
                outcomes.iter().all(|end| *end == Outcome::Waiting),
                "{:?}",
                error()
            );
        }
    }

    #[test]
    fn an_item_on_which_the_script_fails_is_given_up() {
        let broken = || server_error("ERR value is not an integer script: abc, on @user_script:12.");
        let given_up = outcomes((0..2 * SCRIPT_ERRORS_MAX).map(|_| (Err(broken()), true)));
        assert_eq!(given_up.len(), 100);
        assert_eq!(given_up.last(), Some(&Outcome::GivenUp));
        // Any other error in between, from the script or not, restarts the count.
        for other in [
            StoreError::NoAnswer(None),
            server_error("ERR another one script: abc, on @user_script:12."),
        ] {
            let mut other = Some(other);
            let answers = (1..=199).map(|time| match time {
                100 => other.take().unwrap(),
                _ => broken(),
            });
            let waits = outcomes(answers.map(|answer| (Err(answer), true)));
            assert_eq!(waits, [Outcome::Waiting; 199]);
        }
    }

    #[test]
    fn only_identical_script_errors_are_final() {
        let (mut errors, item) = (ScriptErrors::default(), void("allow_1"));
        let mut now = Instant::now();
        let mut record = |error: Option<&str>, times: u32| {
            let are_final = (0..times).map(|_| {
                now += SCRIPT_ERRORS_FOR;
                errors.is_final(&item, error.map(str::to_owned), now)
            });
            are_final.collect::<Vec<_>>()
        };
        let almost = SCRIPT_ERRORS_MAX - 1;
        for error in [Some("one"), None, Some("one"), Some("two"), Some("one")] {
            assert!(!record(error, almost).contains(&true), "{error:?}");
        }
        assert_eq!(record(Some("one"), 1), [true]);
        assert_eq!(record(Some("one"), 1), [false], "it is forgotten");
    }

    /// Items beside it are delivered, so batches follow each other without a pause.
    #[test]
    fn errors_in_quick_succession_are_not_final() {
        let (mut errors, item, first) = (ScriptErrors::default(), void("allow_1"), Instant::now());
        let mut is_final = |after| errors.is_final(&item, Some("one".to_owned()), first + after);
        for _ in 0..2 * SCRIPT_ERRORS_MAX {
            assert!(!is_final(Duration::ZERO));
        }
        assert!(!is_final(SCRIPT_ERRORS_FOR - Duration::from_nanos(1)));
        assert!(is_final(SCRIPT_ERRORS_FOR));
        assert!(!is_final(SCRIPT_ERRORS_FOR), "it is forgotten");
    }

    #[test]
    fn a_reply_counts_if_it_came_from_the_ledger() {
        assert_eq!(outcomes([(Ok(DONE), true)]), [Outcome::Accepted(DONE)]);
        assert_eq!(outcomes([(Ok(MISSING), true)]), [Outcome::Accepted(MISSING)]);
        assert_eq!(
            outcomes([(Ok(DONE), false), (Ok(MISSING), false)]),
            [Outcome::Waiting; 2]
        );
        // The store was the ledger both times: the first delivery settled the hold.
        let again = [(Ok(DONE), false), (Ok(MISSING), true)];
        assert_eq!(outcomes(again), [Outcome::Waiting, Outcome::Accepted(DONE)]);
        // The store was another ledger the first time.
        let another = [(Ok(MISSING), false), (Ok(DONE), true)];
        assert_eq!(outcomes(another), [Outcome::Waiting, Outcome::Accepted(DONE)]);
    }
}
