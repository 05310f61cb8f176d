//! Bringing what waits to the store: to the ledger that it belongs to, and to no other.
//!
//! Before a round the store must be trusted and be that ledger (decision D47), and after it, it must still be, over connections
//! that were not lost meanwhile: only then does an item wait no longer. A hold that the store does not have is missed only where
//! the script itself finds that the account has come as far as when the hold was opened (decision D52). An item on which the
//! store's script breaks off again and again is given up: it would keep the queue from ever being empty.

use super::Pending;
use super::item::Item;
use super::queue::{Queue, Turn};
use crate::metrics::Metrics;
use crate::store_health::StoreHealth;
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::call::settle::Settled;
use store::call::void::{Voided, void_as_of};
use store::connection::round::Round as Servers;
use store::pulse;
use store::sanity::StoreRecord;
use store::{Store, StoreError};
use tokio::time::Instant;

/// Items in flight to the store at once.
const CONCURRENT: usize = 32;
/// Settlements taken from the queue in one round, and as many voids.
const ROUND: usize = 1024;
/// An item is given up when the store's script broke off in the same way this often, which takes 20 seconds and more.
const BROKEN_MAX: u32 = 100;
/// An account of which the store lacks writes is asked for again after this time.
const LACKING_EVERY: Duration = Duration::from_secs(2);

/// What became of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// The store took something.
    Took,
    /// It took nothing.
    TookNothing,
    /// All that waits is for another ledger, or for writes that the store lacks.
    NothingForIt,
}

/// What the store answered to an item that it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Settled(Settled),
    Voided(Voided),
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Taken(Taken),
    GivenUp,
    Waits,
}

/// Delivers what waits.
pub(super) struct Delivery {
    store: Store,
    health: Arc<StoreHealth>,
    metrics: Arc<Metrics>,
    history: History,
}

/// What earlier batches found out.
#[derive(Debug, Default)]
struct History {
    broken: Broken,
    /// Accounts of which the store lacked writes, and when they are tried again.
    lacking: HashMap<String, Instant>,
    /// Outcomes from a store that may not have been the ledger any more.
    unsure: HashMap<Item, Taken>,
}

/// What the store said of the items whose script broke off last time, and how often it said so.
#[derive(Debug, Default)]
struct Broken(HashMap<Item, (String, u32)>);

impl Broken {
    /// Whether trying again is of no use, after an error of which the store said this, if its script broke off.
    fn is_hopeless(&mut self, item: &Item, said: Option<String>) -> bool {
        let Some(said) = said else {
            self.forget(item);
            return false;
        };
        let (before, times) = self.0.entry(item.clone()).or_default();
        *times = if *before == said { *times + 1 } else { 1 };
        *before = said;
        let hopeless = *times >= BROKEN_MAX;
        if hopeless {
            self.forget(item);
        }
        hopeless
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

    /// One round. What is on a server that gives no answer is put off to the next one.
    pub(super) async fn round(&mut self, pending: &Pending) -> Round {
        let cuts = pulse::cuts();
        let Some(ledger) = self.health.read_ledger().await else {
            return Round::TookNothing;
        };
        let now = Instant::now();
        self.history.lacking.retain(|_, again| *again > now);
        let is_for_it =
            |item: &Item| item.is_of(&ledger.epoch) && !self.history.lacking.contains_key(item.account());
        let (batch, others) = pending.queue().first(ROUND, is_for_it);
        pending.elsewhere.store(others, Ordering::Relaxed);
        if batch.is_empty() {
            return Round::NothingForIt;
        }
        let done = self.deliver_all(batch).await;
        // The answers count when they came from the ledger that was looked at.
        let is_sure = self.is_still(&ledger, cuts).await;
        let mut took = false;
        for (turn, item, done) in done {
            let end = self.history.end(&mut pending.queue(), turn, &item, done, is_sure);
            match end {
                End::Taken(taken) => {
                    took = true;
                    record(&self.metrics, &item, taken);
                }
                End::GivenUp => drop(pending.dropped.fetch_add(1, Ordering::Relaxed)),
                End::Waits => {}
            }
        }
        let queue = pending.queue();
        if queue.is_empty() {
            self.history.unsure.clear();
            pending.journal().clear();
        }
        match took {
            true => Round::Took,
            false => Round::TookNothing,
        }
    }

    /// Brings items to the store; `None` for one that it was not asked for.
    async fn deliver_all(
        &mut self,
        batch: Vec<(Turn, Item)>,
    ) -> Vec<(Turn, Item, Option<Result<Taken, StoreError>>)> {
        let servers = &Servers::on(&self.store);
        let store = &self.store;
        let lacking = &Mutex::new(&mut self.history.lacking);
        futures::stream::iter(batch)
            .map(|(turn, item)| async move {
                let with = || lacking.lock().unwrap_or_else(PoisonError::into_inner);
                let bucket = item.bucket();
                if servers.is_put_off(bucket) || with().contains_key(item.account()) {
                    return (turn, item, None);
                }
                let done = deliver(store, &item).await;
                match &done {
                    Err(StoreError::LacksWrites) => {
                        tracing::error!(
                            account = item.account(),
                            "the store lost writes of this account; what waits for it waits on"
                        );
                        with().insert(item.account().to_owned(), Instant::now() + LACKING_EVERY);
                    }
                    Err(error) => servers.met(bucket, error),
                    Ok(_) => {}
                }
                (turn, item, Some(done))
            })
            .buffer_unordered(CONCURRENT)
            .collect()
            .await
    }

    /// Whether the store is this ledger now, and was since `cuts` were counted. In a cluster a lost connection says nothing
    /// about the other nodes; writes that a master lost when it was replaced are found by the script.
    async fn is_still(&self, ledger: &StoreRecord, cuts: u64) -> bool {
        let now = self.health.read_ledger().await;
        now.is_some_and(|now| now.epoch == ledger.epoch) && (self.store.is_cluster() || pulse::cuts() == cuts)
    }
}

impl History {
    /// Ends the waiting of an item, or lets it wait on, by what the store answered.
    fn end(
        &mut self,
        queue: &mut Queue,
        turn: Turn,
        item: &Item,
        done: Option<Result<Taken, StoreError>>,
        is_sure: bool,
    ) -> End {
        match done {
            Some(Ok(taken)) if is_sure => {
                self.broken.forget(item);
                queue.remove(turn);
                // It was taken the first time, by this ledger.
                let before = self.unsure.remove(item);
                let is_missing = taken == Taken::Settled(Settled::Missing);
                End::Taken(before.filter(|_| is_missing).unwrap_or(taken))
            }
            Some(Ok(taken)) => {
                self.unsure.entry(item.clone()).or_insert(taken);
                queue.put_back(turn);
                End::Waits
            }
            Some(Err(error)) if self.broken.is_hopeless(item, error.broken_script()) => {
                let said = error.broken_script();
                tracing::error!(
                    ?item,
                    said,
                    "the store's script breaks off on it; it waits no longer, and what is charged stays"
                );
                queue.remove(turn);
                End::GivenUp
            }
            Some(Err(_)) | None => {
                queue.put_back(turn);
                End::Waits
            }
        }
    }
}

/// Brings an item to the store. Both actions may be repeated, so an item that is delivered twice does no harm.
async fn deliver(store: &Store, item: &Item) -> Result<Taken, StoreError> {
    let as_of = item.as_of();
    match item.to_settle() {
        Some(settle) => settle.run_as_of(as_of, store).await.map(Taken::Settled),
        None => void_as_of(store, &item.name(), as_of).await.map(Taken::Voided),
    }
}

/// Tells metrics and log of an item that the store took.
fn record(metrics: &Metrics, item: &Item, taken: Taken) {
    let id = &item.name().allow_id;
    match (taken, item.to_settle()) {
        (Taken::Settled(settled), Some(settle)) => {
            metrics.ledger.settled(settled, &settle);
            tracing::info!(decision.id = id, charged.usd = %settle.cost, "a settlement that waited was taken");
        }
        (Taken::Voided(voided), _) => {
            metrics.ledger.voided(voided);
            if voided == Voided::Refunded {
                tracing::warn!(decision.id = id, "a lost approval was given back");
            }
        }
        (Taken::Settled(_), None) => {}
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

    const MISSING: Taken = Taken::Settled(Settled::Missing);
    const DONE: Taken = Taken::Settled(Settled::Done);

    /// An error as the server sends it.
    fn said(line: &str) -> StoreError {
        let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        let error = answer.and_then(redis::Value::extract_error).unwrap_err();
        StoreError::from(error)
    }

    /// A queue with one item that the store answers for in these ways, one after the other.
    fn ends(answers: impl IntoIterator<Item = (Result<Taken, StoreError>, bool)>) -> Vec<End> {
        let (mut history, mut queue) = (History::default(), Queue::new(1));
        queue.push(void("allow_1"));
        let mut ends = Vec::new();
        for (answer, is_sure) in answers {
            let (mut batch, _) = queue.first(1, |_| true);
            let Some((turn, item)) = batch.pop() else { break };
            ends.push(history.end(&mut queue, turn, &item, Some(answer), is_sure));
            let is_there = *ends.last().unwrap() == End::Waits;
            assert_eq!(queue.is_empty(), !is_there);
        }
        assert!(!queue.is_empty() || (history.broken.0.is_empty() && history.unsure.is_empty()));
        ends
    }

    fn delivery(fixture: &Fixture) -> Delivery {
        let (health, metrics) = (Arc::clone(&fixture.health), Arc::clone(&fixture.metrics));
        Delivery::new(fixture.store.clone(), health, metrics)
    }

    /// What the store says as long as it is away or refuses, however long that takes.
    fn passing() -> Vec<fn() -> StoreError> {
        vec![
            || StoreError::NoAnswer(None),
            || StoreError::NoAnswer(Some(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())),
            || StoreError::NotConnected(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()),
            || StoreError::LacksWrites,
            || StoreError::Nonsense("settle".to_owned()),
            || said("OOM command not allowed when used memory > 'maxmemory'."),
            || said("LOADING Redis is loading the dataset in memory"),
            || said("READONLY You can't write against a read only replica. script: abc, on @user_script:1."),
            || said("ERR max number of clients reached"),
        ]
    }

    fn settlement(epoch: &str) -> Item {
        Item::Settle {
            name: ["acct_1", "bot", "r", "allow_2"].map(str::to_owned),
            estimate_nanos: 100,
            cost_nanos: 170,
            how: Some("settled".to_owned()),
            epoch: Some(epoch.to_owned()),
            as_of: AsOf::default(),
        }
    }

    /// What was taken is told once, and neither waits nor stands in the journal any more.
    #[tokio::test]
    async fn what_the_store_took_waits_no_longer_and_is_counted() {
        let fixture = Fixture::new().await;
        let pending = &fixture.pending;
        pending.push(void("allow_1"));
        pending.push(settlement(EPOCH));
        let mut delivery = delivery(&fixture);
        assert_eq!(
            delivery.round(pending).await,
            Round::TookNothing,
            "nothing was said about the scripts"
        );
        assert_eq!((pending.len(), pending.journal_lines()), (2, 2));
        fixture.on_command(|command| match () {
            () if runs(command, &SETTLE) => Some(text("settled")),
            () => runs(command, &VOID).then(|| Reply::Raw("*1\r\n$8\r\nrefunded\r\n".to_owned())),
        });
        assert_eq!(delivery.round(pending).await, Round::Took);
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
    async fn what_is_for_another_ledger_or_for_lost_writes_waits_on() {
        let fixture = Fixture::new().await;
        let pending = &fixture.pending;
        fixture.on_command(|command| runs(command, &SETTLE).then(|| text("lacks_writes")));
        pending.push(settlement("another"));
        let mut delivery = delivery(&fixture);
        assert_eq!(delivery.round(pending).await, Round::NothingForIt);
        assert_eq!((pending.len(), pending.elsewhere()), (1, 1));
        pending.push(settlement(EPOCH));
        assert_eq!(delivery.round(pending).await, Round::TookNothing);
        // It is not asked for again right away.
        assert_eq!(delivery.round(pending).await, Round::NothingForIt);
        assert_eq!(fixture.arguments(&SETTLE).len(), 1);
        assert_eq!((pending.len(), pending.elsewhere()), (2, 2));
    }

    #[test]
    fn an_outage_drops_nothing_however_long_it_is() {
        for error in passing() {
            let answers = (0..3 * BROKEN_MAX).map(|_| (Err(error()), true));
            let ends = ends(answers);
            assert_eq!(ends.len(), 300, "{:?}", error());
            assert!(ends.iter().all(|end| *end == End::Waits), "{:?}", error());
        }
    }

    #[test]
    fn what_the_script_breaks_off_on_is_given_up() {
        let broken = || said("ERR value is not an integer script: abc, on @user_script:12.");
        let given_up = ends((0..2 * BROKEN_MAX).map(|_| (Err(broken()), true)));
        assert_eq!(given_up.len(), 100);
        assert_eq!(given_up.last(), Some(&End::GivenUp));
        // Something else in between, or something else that it breaks off on, begins the count anew.
        for other in [
            StoreError::NoAnswer(None),
            said("ERR another one script: abc, on @user_script:12."),
        ] {
            let mut other = Some(other);
            let answers = (1..=199).map(|time| match time {
                100 => other.take().unwrap(),
                _ => broken(),
            });
            let waits = ends(answers.map(|answer| (Err(answer), true)));
            assert_eq!(waits, [End::Waits; 199]);
        }
    }

    #[test]
    fn only_what_breaks_the_script_in_the_same_way_is_hopeless() {
        let (mut broken, item) = (Broken::default(), void("allow_1"));
        let mut tries = |said: Option<&str>, times: u32| {
            let hopeless = (0..times).map(|_| broken.is_hopeless(&item, said.map(str::to_owned)));
            hopeless.collect::<Vec<_>>()
        };
        let almost = BROKEN_MAX - 1;
        for said in [Some("one"), None, Some("one"), Some("two"), Some("one")] {
            assert!(!tries(said, almost).contains(&true), "{said:?}");
        }
        assert_eq!(tries(Some("one"), 1), [true]);
        assert_eq!(tries(Some("one"), 1), [false], "it is forgotten");
    }

    #[test]
    fn an_answer_counts_when_it_came_from_the_ledger() {
        assert_eq!(ends([(Ok(DONE), true)]), [End::Taken(DONE)]);
        assert_eq!(ends([(Ok(MISSING), true)]), [End::Taken(MISSING)]);
        assert_eq!(ends([(Ok(DONE), false), (Ok(MISSING), false)]), [End::Waits; 2]);
        // It was the ledger all the same: what it took the first time is not there any more.
        let again = [(Ok(DONE), false), (Ok(MISSING), true)];
        assert_eq!(ends(again), [End::Waits, End::Taken(DONE)]);
        // It was another one.
        let another = [(Ok(MISSING), false), (Ok(DONE), true)];
        assert_eq!(ends(another), [End::Waits, End::Taken(DONE)]);
    }
}
