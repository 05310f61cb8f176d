//! Retry queue for settlements and voids that the store did not accept (decision D36).
//!
//! The [`queue`] is bounded and survives a restart: each [`item`] is appended to a [`journal`]. New items that do not
//! fit are dropped, which leaves the estimate charged. A settlement may charge more than the estimate, so it is never
//! dropped for a void. Items in the journals of [`foreign_journals`] that do not fit stay on the disk. [`delivery`]
//! sends an item only to the ledger of its hold. [`writing`] appends the [`unjournaled`] items, outside of the calls
//! that queue them.

pub mod delivery;
pub mod foreign_journals;
pub mod item;
pub mod journal;
pub mod queue;
mod unjournaled;
mod writing;

use crate::metrics::Metrics;
use crate::store_health::EdgeStoreHealth;
use delivery::{BatchOutcome, ItemDeliverer};
use foreign_journals::ForeignJournals;
use item::{HoldOrigin, RetryItem};
use journal::Journal;
use parking_lot::{Mutex, MutexGuard};
use queue::Queue;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use store::Store;
use store::call::hold::HoldName;
use store::call::settle::Settle;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use unjournaled::Unjournaled;

/// Pause after a batch of which the store accepted no item.
const NOT_DELIVERED_PAUSE: Duration = Duration::from_millis(200);
/// Pause while no item is deliverable to this ledger; a new item ends it.
const NOTHING_DELIVERABLE_PAUSE: Duration = Duration::from_secs(2);
/// Interval for taking over the journals of processes that ended, and for writing items that the own journal lacks.
const TAKE_OVER_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct RetryQueue {
    /// `proxy.data_dir`
    dir: PathBuf,
    queue: Mutex<Queue>,
    /// Locked before the queue, never after it: the lock is held during disk writes.
    journal: Mutex<Journal>,
    /// Locked after the queue.
    unjournaled: Mutex<Unjournaled>,
    /// Locked before the journal: the lock is held during disk reads. `None` once this process is about to end.
    foreign_journals: Mutex<Option<ForeignJournals>>,
    /// Number of the journal's lines.
    journal_lines: AtomicUsize,
    dropped: AtomicU64,
    /// Number of items in the last batch that belong to another ledger, or to accounts whose writes the store lacks.
    elsewhere: AtomicUsize,
    /// Maximum number of queued items.
    limit: usize,
    wake: Notify,
    /// Notified when the journal is no longer up to date with the queue.
    outdated: Notify,
    /// Number of the last item that an attempt was made to write.
    attempted: watch::Sender<u64>,
}

impl RetryQueue {
    /// Opens a queue of at most `limit` items with a journal in `dir`, and takes over the journals of processes that
    /// ended.
    ///
    /// # Errors
    /// The directory cannot be created, read or written.
    pub fn open(dir: &Path, limit: usize) -> std::io::Result<Self> {
        let journal = Journal::open(dir)?;
        let foreign = ForeignJournals::beside(journal.path());
        let retry_queue = Self {
            dir: dir.to_owned(),
            queue: Mutex::new(Queue::new(limit)),
            journal: Mutex::new(journal),
            unjournaled: Mutex::default(),
            foreign_journals: Mutex::new(Some(foreign)),
            limit,
            journal_lines: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            elsewhere: AtomicUsize::new(0),
            wake: Notify::new(),
            outdated: Notify::new(),
            attempted: watch::Sender::new(0),
        };
        retry_queue.take_over()?;
        Ok(retry_queue)
    }

    /// Queues a settlement for the ledger of its hold, and waits for the journal unless the disk hangs.
    pub async fn settle(&self, settle: Settle, origin: &HoldOrigin) {
        self.enqueue(RetryItem::settle(settle, origin)).await;
    }

    /// Queues a void for the ledger that may have opened the hold, and waits for the journal unless the disk hangs.
    pub async fn void(&self, name: HoldName, origin: &HoldOrigin) {
        self.enqueue(RetryItem::void(name, origin)).await;
    }

    async fn enqueue(&self, item: RetryItem) {
        if let Some(number) = self.push(item) {
            self.attempted(number).await;
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.queue().len()
    }

    /// Returns the number of these items that the store could not accept in the last batch, since it is another ledger
    /// or lacks writes.
    pub fn elsewhere(&self) -> usize {
        self.elsewhere.load(Ordering::Relaxed).min(self.len())
    }

    /// Returns the number of items that did not fit or were given up.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of lines of the journal, at least one for each item in it.
    pub fn journal_lines(&self) -> usize {
        self.journal_lines.load(Ordering::Relaxed)
    }

    /// Items that are in memory alone, because the journal could not be written yet. They may have been delivered in
    /// the last two seconds.
    pub fn unwritten(&self) -> usize {
        self.unjournaled().unwritten()
    }

    /// Returns whether no item waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the journal if the queue is empty; otherwise the next process takes it over. The journal also stays
    /// while a take-over is in progress. Blocks on the disk.
    pub fn close(&self) {
        let Some(mut foreign) = self.foreign_journals.try_lock() else {
            return;
        };
        *foreign = None;
        let mut journal = self.journal();
        if self.is_empty() {
            journal.remove();
        }
    }

    /// Removes the files that were kept for items that are now in the journal.
    fn remove_kept_files(&self) {
        if let Some(foreign) = &mut *self.foreign_journals.lock() {
            self.remove_kept(foreign);
        }
    }

    /// If power fails, the disk must have the items in the own journal or in the kept files.
    fn remove_kept(&self, foreign: &mut ForeignJournals) {
        if foreign.has_kept() && !self.unjournaled().needs_kept_files() && self.sync() {
            foreign.remove_kept();
        }
    }

    /// Waits until the disk has the journal. Returns `false` if that failed; the journal is then rewritten. Holds no
    /// lock meanwhile.
    fn sync(&self) -> bool {
        let file = self.journal().file();
        let synced = file.and_then(|file| file.sync_data());
        if let Err(error) = &synced {
            tracing::error!(%error, "the retry journal cannot be synced to the disk");
            self.unjournaled().unsynced();
        }
        synced.is_ok()
    }

    /// Takes over the journals of processes that ended. Takes only what fits into the queue; the rest stays on the disk
    /// for the next time or another process. Does nothing while this process has deliverable items, since its store
    /// does not reply: other processes, or a later run, take the journals over. Blocks on the disk, and meanwhile holds
    /// no lock that a call needs.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn take_over(&self) -> std::io::Result<()> {
        let waiting = self.len();
        let room = self.limit.saturating_sub(waiting);
        if waiting > self.elsewhere() || room == 0 {
            return Ok(());
        }
        let mut foreign = self.foreign_journals.lock();
        let Some(foreign) = &mut *foreign else {
            return Ok(());
        };
        let mut found = foreign.read(room)?;
        let items = found.items().count();
        if items == 0 {
            foreign.remove(found);
            return Ok(());
        }
        let mut queue = self.queue();
        if items > queue.free() {
            // Items were queued meanwhile. The files stay as they are.
            return Ok(());
        }
        self.unjournaled().in_kept_files(found.items());
        for item in found.take_items() {
            queue.push(item);
        }
        drop(queue);
        tracing::info!(items, "taken over from a process that ended");
        self.wake.notify_one();
        foreign.keep(found);
        self.write(true);
        self.remove_kept(foreign);
        Ok(())
    }

    /// Queues an item. Returns its number for the journal, unless it does not fit.
    fn push(&self, item: RetryItem) -> Option<u64> {
        let mut queue = self.queue();
        let dropped = queue.push(item.clone());
        if let Some(dropped) = &dropped {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::error!(item = ?dropped, "the retry queue is full; the estimate stays charged");
        }
        if dropped.as_ref() == Some(&item) {
            return None;
        }
        let number = self.unjournaled().in_memory(item);
        drop(queue);
        self.wake.notify_one();
        self.outdated.notify_one();
        Some(number)
    }

    /// Takes over the journals of processes that ended, and writes items that the own journal lacks, forever.
    pub async fn follow_others(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(TAKE_OVER_EVERY);
        let mut was_readable = true;
        loop {
            ticks.tick().await;
            let retry_queue = Arc::clone(&self);
            let taken_over = tokio::task::spawn_blocking(move || {
                retry_queue.catch_up();
                retry_queue.remove_kept_files();
                retry_queue.take_over()
            });
            let Ok(taken_over) = taken_over.await else {
                continue;
            };
            if let (Err(error), true) = (&taken_over, was_readable) {
                let dir = self.dir.display();
                tracing::error!(path = %dir, %error, "proxy.data_dir cannot be read");
            }
            was_readable = taken_over.is_ok();
        }
    }

    /// Delivers the items, forever.
    pub async fn run(self: Arc<Self>, store: Store, health: Arc<EdgeStoreHealth>, metrics: Arc<Metrics>) {
        let mut delivery = ItemDeliverer::new(store, health, metrics);
        loop {
            if self.is_empty() {
                self.wake.notified().await;
            }
            match delivery.deliver_batch(&self).await {
                BatchOutcome::Delivered => {}
                BatchOutcome::NotDelivered => sleep(NOT_DELIVERED_PAUSE).await,
                BatchOutcome::NothingDeliverable => {
                    drop(timeout(NOTHING_DELIVERABLE_PAUSE, self.wake.notified()).await)
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock()
    }

    fn unjournaled(&self) -> MutexGuard<'_, Unjournaled> {
        self.unjournaled.lock()
    }
}

#[cfg(test)]
mod tests;
