//! What the store could not take yet: settlements and voids, retried in the background until it does (decision D36).
//!
//! The [`queue`] is bounded and survives a restart: each item is appended to a [`journal`] before it waits. What does not fit
//! is dropped, which leaves the estimate charged; a settlement that may say more than that is never dropped for a void. So is what makes the store's script break off in
//! the same way again and again: it would keep the queue from ever being empty.

pub mod journal;
pub mod others;
pub mod queue;

use crate::gate::Gate;
use futures::StreamExt;
use journal::Journal;
use others::Others;
use queue::Queue;
use serde::{Deserialize, Serialize};
use shared::domain::entry::How;
use shared::domain::money::Nanos;
use shared::store::StoreError;
use shared::store::connection::round::Round;
use shared::store::keys::{AccountKeys, Bucket};
use shared::store::script::hold::HoldName;
use shared::store::script::settle::Settle;
use shared::store::script::void::{Voided, void};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Pause after a round in which the store took nothing.
const PAUSE: Duration = Duration::from_millis(200);
/// Items in flight to the store at once.
const CONCURRENT: usize = 32;
/// Between two looks for what other processes left behind.
const ADOPT_EVERY: Duration = Duration::from_secs(2);
/// Settlements taken from the queue in one round, and as many voids.
const ROUND: usize = 1024;

/// The journal is rewritten when it has this many lines for each item that may wait.
const JOURNAL_LINES_PER_ITEM: usize = 2;

/// An item is given up when the store's script broke off in the same way this often, which takes 20 seconds and more.
const BROKEN_MAX: u32 = 100;

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

/// Something that has to reach the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Item {
    /// Resolve a hold.
    Settle {
        /// Account, agent, run and decision id.
        name: [String; 4],
        /// Nano-USD charged.
        estimate_nanos: u64,
        /// Nano-USD to be charged.
        cost_nanos: u64,
        /// How the call ended, as the audit log calls it; a journal of an earlier version does not say.
        #[serde(default)]
        how: Option<String>,
    },
    /// Make sure that a lost authorize never charges.
    Void {
        /// Account, agent, run and decision id.
        name: [String; 4],
    },
}

impl Item {
    /// The bucket of its account.
    fn bucket(&self) -> Bucket {
        let (Self::Settle { name, .. } | Self::Void { name }) = self;
        AccountKeys::of(&name[0]).bucket()
    }
}

fn to_words(name: HoldName) -> [String; 4] {
    [name.account, name.agent, name.run, name.allow_id]
}

fn to_name(words: &[String; 4]) -> HoldName {
    let [account, agent, run, allow_id] = words.clone();
    HoldName {
        account,
        agent,
        run,
        allow_id,
    }
}

/// How a call ended; told from its cost where the journal does not say.
fn to_how(word: Option<&str>, estimate_nanos: u64, cost_nanos: u64) -> How {
    word.and_then(How::parse).unwrap_or(match cost_nanos {
        cost if cost == estimate_nanos => How::Estimated,
        0 => How::Released,
        _ => How::Settled,
    })
}

/// The queue.
#[derive(Debug)]
pub struct Pending {
    queue: Mutex<Queue>,
    journal: Mutex<Journal>,
    /// Locked by who reads the disk only; whoever holds it may lock the queue, and not the other way round.
    /// `None` once this process is about to end.
    others: Mutex<Option<Others>>,
    dropped: AtomicU64,
    /// How many items may wait.
    limit: usize,
    wake: Notify,
}

impl Pending {
    /// A queue with a journal in `dir`, that starts with what earlier processes left there: at most `limit` items.
    ///
    /// # Errors
    /// When the folder cannot be made, read or written.
    pub fn open(dir: &Path, limit: usize) -> std::io::Result<Self> {
        let journal = Journal::open(dir)?;
        let others = Others::beside(journal.path());
        let pending = Self {
            queue: Mutex::new(Queue::new(limit)),
            journal: Mutex::new(journal),
            others: Mutex::new(Some(others)),
            limit,
            dropped: AtomicU64::new(0),
            wake: Notify::new(),
        };
        pending.take_over()?;
        Ok(pending)
    }

    /// Lets a settlement wait.
    pub fn settle(&self, settle: Settle) {
        let Settle {
            name,
            estimate,
            cost,
            how,
        } = settle;
        self.push(Item::Settle {
            name: to_words(name),
            estimate_nanos: estimate.get(),
            cost_nanos: cost.get(),
            how: Some(how.as_str().to_owned()),
        });
    }

    /// Lets a void wait.
    pub fn void(&self, name: HoldName) {
        self.push(Item::Void { name: to_words(name) });
    }

    /// Items that wait.
    pub fn len(&self) -> usize {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Items that did not fit.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Lines of the journal.
    pub fn journal_lines(&self) -> usize {
        self.journal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .lines()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Leaves nothing behind when nothing waits; otherwise the journal stays for the next process. It stays too while
    /// something is just taken over.
    pub fn close(&self) {
        let Ok(mut others) = self.others.try_lock() else {
            return;
        };
        *others = None;
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.is_empty() {
            self.journal
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove();
        }
    }

    /// Takes over what processes that ended have left beside the journal. One that has something waiting itself leaves it to
    /// others, or for later: its store does not answer. Waits for the disk, and lets nobody wait for it meanwhile.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn take_over(&self) -> std::io::Result<()> {
        if !self.is_empty() {
            return Ok(());
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(others) = &mut *others else {
            return Ok(());
        };
        let mut found = others.read(self.limit)?;
        let items = std::mem::take(&mut found.items);
        let mut written = Ok(());
        if !items.is_empty() {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if items.len() > queue.room() {
                // Something came to wait meanwhile; the files are left as they are.
                return Ok(());
            }
            let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
            tracing::info!(items = items.len(), "taken over from a process that ended");
            written = journal.append(&items);
            for item in items {
                queue.push(item);
            }
            self.wake.notify_one();
        }
        self.dropped.fetch_add(found.dropped, Ordering::Relaxed);
        match written {
            Ok(()) => others.taken_over(found),
            Err(_reported) => others.keep(found),
        }
        Ok(())
    }

    fn push(&self, item: Item) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = queue.push(item.clone());
        if let Some(dropped) = &dropped {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::error!(item = ?dropped, "the retry queue is full; the estimate stays charged");
        }
        if dropped.as_ref() == Some(&item) {
            return;
        }
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let is_long = journal.lines() >= JOURNAL_LINES_PER_ITEM * self.limit;
        if !is_long || journal.rewrite(queue.items()).is_err() {
            // What the disk does not take waits in memory alone.
            drop(journal.append([&item]));
        }
        self.wake.notify_one();
    }

    /// Looks for what other processes left behind, for ever.
    pub async fn follow_others(gate: Arc<Gate>) {
        let mut ticks = tokio::time::interval(ADOPT_EVERY);
        loop {
            ticks.tick().await;
            let looking = Arc::clone(&gate);
            let look = tokio::task::spawn_blocking(move || looking.pending.take_over());
            if let Ok(Err(error)) = look.await {
                tracing::error!(%error, "proxy.data_dir cannot be read");
            }
        }
    }

    /// Brings what waits to the store, for ever.
    pub async fn run(&self, gate: &Gate) {
        let mut broken = Broken::default();
        loop {
            if self.is_empty() {
                self.wake.notified().await;
            }
            if self.round(gate, &mut broken).await == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Gives an item up that the store's script breaks off on. What it would have moved stays charged, until a person has
    /// looked at it.
    fn give_up(&self, item: &Item, error: &StoreError) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        let said = error.broken_script();
        tracing::error!(
            ?item,
            said,
            "the store's script breaks off on it; it waits no longer, and what is charged stays"
        );
    }

    /// One round; returns how many items the store took. Those of a server that gives no answer are put off to the next one.
    async fn round(&self, gate: &Gate, broken: &mut Broken) -> usize {
        let batch = {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.first(ROUND)
        };
        let round = Round::on(&gate.store);
        let round = &round;
        let done: Vec<_> = futures::stream::iter(batch)
            .map(|(turn, item)| async move {
                let bucket = item.bucket();
                if round.is_put_off(bucket) {
                    return (turn, item, None);
                }
                let done = deliver(gate, &item).await;
                if let Err(error) = &done {
                    round.met(bucket, error);
                }
                (turn, item, Some(done))
            })
            .buffer_unordered(CONCURRENT)
            .collect()
            .await;
        let mut delivered = 0;
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        for (turn, item, done) in done {
            match done {
                Some(Ok(())) => {
                    broken.forget(&item);
                    queue.remove(turn);
                    delivered += 1;
                }
                Some(Err(error)) if broken.is_hopeless(&item, error.broken_script()) => {
                    self.give_up(&item, &error);
                    queue.remove(turn);
                }
                Some(Err(_)) | None => queue.put_back(turn),
            }
        }
        if queue.is_empty() {
            self.journal
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        delivered
    }
}

/// Brings an item to the store. Both actions may be repeated, so an item that is delivered twice does no harm.
async fn deliver(gate: &Gate, item: &Item) -> Result<(), StoreError> {
    match item {
        Item::Settle {
            name,
            estimate_nanos,
            cost_nanos,
            how,
        } => {
            let (estimate, cost) = (
                Nanos::from_stored(*estimate_nanos),
                Nanos::from_stored(*cost_nanos),
            );
            let settle = Settle {
                name: to_name(name),
                estimate,
                cost,
                how: to_how(how.as_deref(), *estimate_nanos, *cost_nanos),
            };
            let settled = settle.run(&gate.store).await?;
            gate.metrics.ledger.settled(settled, &settle);
            tracing::info!(decision.id = name[3], charged.usd = %cost, "a settlement that waited was taken");
        }
        Item::Void { name } => {
            let voided = void(&gate.store, &to_name(name)).await?;
            gate.metrics.ledger.voided(voided);
            if voided == Voided::Refunded {
                tracing::warn!(decision.id = name[3], "a lost approval was given back");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::journal::tests::{SMALL, folder_of_small_files, fresh, item, where_files_stay_small};
    use super::*;

    #[test]
    fn a_journal_of_an_earlier_version_is_read() {
        for (cost, how) in [
            (100, How::Estimated),
            (0, How::Released),
            (30, How::Settled),
            (170, How::Settled),
        ] {
            let line = format!(
                r#"{{"do":"settle","name":["acct_1","bot","r","allow_1"],"estimate_nanos":100,"cost_nanos":{cost}}}"#
            );
            let Item::Settle { how: said, .. } = serde_json::from_str(&line).unwrap() else {
                panic!("a settlement");
            };
            assert_eq!(to_how(said.as_deref(), 100, cost), how, "{cost}");
        }
        assert_eq!(to_how(Some("released"), 0, 0), How::Released);
        assert_eq!(to_how(None, 0, 0), How::Estimated);
    }

    #[test]
    fn only_what_breaks_the_script_in_the_same_way_is_hopeless() {
        let (mut broken, item) = (
            Broken::default(),
            Item::Void {
                name: ["acct_1", "bot", "r", "allow_1"].map(str::to_owned),
            },
        );
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
    fn what_does_not_fit_on_the_disk_stays_where_it_was_left() {
        let ids = || (0..SMALL / 10).map(|at| item(&format!("allow_{at}")));
        let Some(dir) = folder_of_small_files() else {
            let dir = fresh("full");
            let mut journal = Journal::open(&dir).unwrap();
            journal.append(&ids().collect::<Vec<_>>()).unwrap();
            drop(journal);
            let test = "pending::tests::what_does_not_fit_on_the_disk_stays_where_it_was_left";
            where_files_stay_small(test, &dir);
            let left = Pending::open(&dir, SMALL).unwrap();
            assert_eq!(
                left.len(),
                ids().count(),
                "the process that took it over ended early"
            );
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
            return std::fs::remove_dir_all(dir).unwrap();
        };
        let pending = Pending::open(&dir, SMALL).unwrap();
        assert_eq!(
            (pending.len(), pending.journal_lines(), pending.dropped()),
            (ids().count(), 0, 0)
        );
        let mut beside = Others::beside(&dir.join("none"));
        assert_eq!(beside.read(SMALL).unwrap().items, [], "it is held");
    }
}
