//! What the store could not take yet: settlements and voids, retried in the background until it does (decision D36).
//!
//! The [`queue`] is bounded and survives a restart: each [`item`] is appended to a [`journal`] before it waits. What does not fit
//! is dropped, which leaves the estimate charged; a settlement that may say more than that is never dropped for a void. The
//! [`delivery`] brings an item to the ledger that its hold belongs to, and to no other.

pub mod delivery;
pub mod item;
pub mod journal;
pub mod others;
pub mod queue;

use crate::metrics::Metrics;
use crate::store_health::StoreHealth;
use delivery::{Delivery, Round};
use item::{Item, Origin};
use journal::Journal;
use others::Others;
use queue::Queue;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::Store;
use store::call::hold::HoldName;
use store::call::settle::Settle;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Pause after a round in which the store took nothing.
const PAUSE: Duration = Duration::from_millis(200);
/// Pause where nothing waits for this ledger, unless something comes.
const ELSEWHERE_PAUSE: Duration = Duration::from_secs(2);
/// Between two looks for what other processes left behind.
const ADOPT_EVERY: Duration = Duration::from_secs(2);

/// The journal is rewritten when it has this many lines for each item that may wait.
const JOURNAL_LINES_PER_ITEM: usize = 2;

/// The queue.
#[derive(Debug)]
pub struct Pending {
    queue: Mutex<Queue>,
    journal: Mutex<Journal>,
    /// Locked by who reads the disk only; whoever holds it may lock the queue, and not the other way round.
    /// `None` once this process is about to end.
    others: Mutex<Option<Others>>,
    dropped: AtomicU64,
    /// How many of the items waited for another ledger, or for writes that the store lacks, in the last round.
    elsewhere: AtomicUsize,
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
            elsewhere: AtomicUsize::new(0),
            wake: Notify::new(),
        };
        pending.take_over()?;
        Ok(pending)
    }

    /// Lets a settlement wait for the ledger of its hold.
    pub fn settle(&self, settle: Settle, origin: &Origin) {
        self.push(Item::settle(settle, origin));
    }

    /// Lets a void wait for the ledger that was asked for the hold.
    pub fn void(&self, name: HoldName, origin: &Origin) {
        self.push(Item::void(name, origin));
    }

    /// Items that wait.
    pub fn len(&self) -> usize {
        self.queue().len()
    }

    /// Of these, items that the store as it was in the last round cannot take: it is another ledger, or lacks writes.
    pub fn elsewhere(&self) -> usize {
        self.elsewhere.load(Ordering::Relaxed).min(self.len())
    }

    /// Items that did not fit, or were given up.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Lines of the journal.
    pub fn journal_lines(&self) -> usize {
        self.journal().lines()
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
        let queue = self.queue();
        if queue.is_empty() {
            self.journal().remove();
        }
    }

    /// Takes over what processes that ended have left beside the journal. One that has something waiting for its own store
    /// leaves it to others, or for later: its store does not answer. Waits for the disk, and lets nobody wait for it meanwhile.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn take_over(&self) -> std::io::Result<()> {
        let waiting = self.len();
        if waiting > self.elsewhere() {
            return Ok(());
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(others) = &mut *others else {
            return Ok(());
        };
        if waiting == 0 {
            others.let_go();
        }
        let mut found = others.read(self.limit.saturating_sub(waiting))?;
        let items = std::mem::take(&mut found.items);
        let mut written = Ok(());
        if !items.is_empty() {
            let mut queue = self.queue();
            if items.len() > queue.room() {
                // Something came to wait meanwhile; the files are left as they are.
                return Ok(());
            }
            let mut journal = self.journal();
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
        let mut queue = self.queue();
        let dropped = queue.push(item.clone());
        if let Some(dropped) = &dropped {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::error!(item = ?dropped, "the retry queue is full; the estimate stays charged");
        }
        if dropped.as_ref() == Some(&item) {
            return;
        }
        let mut journal = self.journal();
        let is_long = journal.lines() >= JOURNAL_LINES_PER_ITEM * self.limit;
        if !is_long || journal.rewrite(queue.items()).is_err() {
            // What the disk does not take waits in memory alone.
            drop(journal.append([&item]));
        }
        self.wake.notify_one();
    }

    /// Looks for what other processes left behind, for ever.
    pub async fn follow_others(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(ADOPT_EVERY);
        loop {
            ticks.tick().await;
            let pending = Arc::clone(&self);
            let taken_over = tokio::task::spawn_blocking(move || pending.take_over());
            if let Ok(Err(error)) = taken_over.await {
                tracing::error!(%error, "proxy.data_dir cannot be read");
            }
        }
    }

    /// Brings what waits to the store, for ever.
    pub async fn run(self: Arc<Self>, store: Store, health: Arc<StoreHealth>, metrics: Arc<Metrics>) {
        let mut delivery = Delivery::new(store, health, metrics);
        loop {
            if self.is_empty() {
                self.wake.notified().await;
            }
            match delivery.round(&self).await {
                Round::Took => {}
                Round::TookNothing => sleep(PAUSE).await,
                Round::NothingForIt => drop(timeout(ELSEWHERE_PAUSE, self.wake.notified()).await),
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::journal::tests::{SMALL, folder_of_small_files, fresh, item, where_files_stay_small};
    use super::*;

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

    /// What others would take over if the process were killed now.
    fn written(pending: &Pending) -> Vec<Item> {
        let path = pending.journal().path().to_owned();
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Many times the limit comes and goes; whenever the process is killed, what waits is in its journal, which stays short.
    #[test]
    fn what_waits_is_in_the_journal_however_much_came_before() {
        const LIMIT: usize = 3;
        let dir = fresh("long");
        let pending = Pending::open(&dir, LIMIT).unwrap();
        for at in 0..5 * LIMIT {
            if pending.len() == LIMIT {
                let first = pending.queue().first(1, |_| true).0;
                pending.queue().remove(first[0].0);
            }
            pending.push(item(&format!("allow_{at}")));
            let waits: Vec<Item> = pending.queue().items().cloned().collect();
            let written = written(&pending);
            assert!(written.ends_with(&waits), "{at}: {written:?}");
            assert!(
                written.len() <= JOURNAL_LINES_PER_ITEM * LIMIT,
                "{at}: {} lines",
                written.len()
            );
            assert_eq!(pending.journal_lines(), written.len());
        }
        let waits: Vec<Item> = pending.queue().items().cloned().collect();
        // The lock goes with the process.
        drop(pending);
        let next = Pending::open(&dir, 9).unwrap();
        let taken_over: Vec<Item> = next.queue().items().cloned().collect();
        assert!(taken_over.ends_with(&waits), "{taken_over:?}");
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// A process that ends leaves a file only where something waits, and takes nothing over any more.
    #[test]
    fn a_process_that_ends_leaves_only_what_waits() {
        let dir = fresh("closed");
        let files = || std::fs::read_dir(&dir).unwrap().count();
        let pending = Pending::open(&dir, 3).unwrap();
        pending.push(item("allow_1"));
        assert!(!pending.is_empty());
        pending.close();
        assert_eq!(files(), 1, "for the next process");
        drop(pending);
        let next = Pending::open(&dir, 3).unwrap();
        assert_eq!((next.len(), files()), (1, 1));
        let first = next.queue().first(1, |_| true).0;
        next.queue().remove(first[0].0);
        assert!(next.is_empty());
        next.close();
        assert_eq!(files(), 0);
        let mut left = Journal::open(&dir).unwrap();
        left.append([&item("allow_2")]).unwrap();
        drop(left);
        next.take_over().unwrap();
        assert_eq!((next.len(), files()), (0, 1), "left for another");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_counted_and_not_written() {
        let dir = fresh("too-many");
        let pending = Pending::open(&dir, 2).unwrap();
        for id in ["allow_1", "allow_2", "allow_3"] {
            pending.push(item(id));
        }
        assert_eq!(
            (pending.len(), pending.dropped(), pending.journal_lines()),
            (2, 1, 2)
        );
        assert_eq!(written(&pending), [item("allow_1"), item("allow_2")]);
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// What waits for another ledger keeps nobody from taking over what waits for this one.
    #[test]
    fn only_what_waits_for_this_store_keeps_from_taking_over() {
        let dir = fresh("elsewhere");
        let pending = Pending::open(&dir, 3).unwrap();
        pending.push(item("allow_1"));
        let leave = |ids: &[&str]| {
            let mut left = Journal::open(&dir).unwrap();
            left.append(&ids.iter().map(|id| item(id)).collect::<Vec<_>>())
                .unwrap();
        };
        leave(&["allow_2"]);
        pending.take_over().unwrap();
        assert_eq!(pending.len(), 1, "its store does not answer");
        pending.elsewhere.store(1, Ordering::Relaxed);
        pending.take_over().unwrap();
        assert_eq!((pending.len(), pending.elsewhere()), (2, 1));
        assert_eq!(written(&pending), [item("allow_1"), item("allow_2")]);
        pending.elsewhere.store(2, Ordering::Relaxed);
        leave(&["allow_3", "allow_4"]);
        pending.take_over().unwrap();
        assert_eq!((pending.len(), pending.dropped()), (3, 1), "no more than fits");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
