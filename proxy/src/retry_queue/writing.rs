//! Writing of the journal. It happens in blocking threads, one at a time, and holds no lock that a call or a metric
//! needs: a disk that hangs must not hold them up.

use super::RetryQueue;
use super::item::RetryItem;
use super::journal::Journal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Maximum time that a call waits until the journal has its item. Takes less than a millisecond unless the disk hangs.
const WRITTEN_WITHIN: Duration = Duration::from_millis(100);
/// Interval of the check that the path of the journal still names its file, without new items.
const CHECK_PATH_EVERY: Duration = Duration::from_secs(1);
/// The journal is rewritten when it has this many lines for each item that fits into the queue.
pub(super) const JOURNAL_LINES_PER_ITEM: usize = 2;

impl RetryQueue {
    /// Waits until an attempt was made to write the item with this number, at most [`WRITTEN_WITHIN`].
    pub(super) async fn attempted(&self, number: u64) {
        let mut attempted = self.attempted.subscribe();
        let attempt = attempted.wait_for(|attempted| *attempted >= number);
        drop(timeout(WRITTEN_WITHIN, attempt).await);
    }

    /// Writes new items at once, and checks that the path of the journal still names its file, forever.
    pub async fn follow_new(self: Arc<Self>) {
        loop {
            drop(timeout(CHECK_PATH_EVERY, self.outdated.notified()).await);
            let retry_queue = Arc::clone(&self);
            if let Err(error) = spawn_blocking(move || retry_queue.write(false)).await {
                tracing::error!(%error, "writing the retry journal panicked");
            }
        }
    }

    /// Writes the items that the journal lacks, also after a failed write. Returns the items that exist only in memory
    /// because the write failed again: they are lost if the process ends. Blocks on the disk.
    pub fn catch_up(&self) -> Vec<RetryItem> {
        self.write(true);
        self.only_in_memory()
    }

    /// Returns the items that are lost if the process ends now. Does not wait for the disk.
    pub fn only_in_memory(&self) -> Vec<RetryItem> {
        self.unjournaled().only_in_memory()
    }

    /// Brings the file up to date with the queue. After a failed write only a retry tries again: on a full disk each
    /// attempt is as long as the queue. Blocks on the disk.
    pub(super) fn write(&self, is_retry: bool) {
        let mut journal = self.journal();
        let was_failing = !journal.can_append();
        let recorded = self.update(&mut journal, is_retry);
        if was_failing && journal.can_append() {
            tracing::info!(items = self.len(), "the retry journal has every item again");
        }
        self.journal_lines.store(journal.lines(), Ordering::Relaxed);
        self.attempted.send_replace(recorded);
    }

    /// Returns the number of the last item that an attempt was made for.
    fn update(&self, journal: &mut Journal, is_retry: bool) -> u64 {
        let is_displaced = journal.is_displaced();
        let queue = self.queue();
        let mut unjournaled = self.unjournaled();
        if is_displaced {
            unjournaled.displaced(queue.items());
        }
        let recorded = unjournaled.recorded();
        if queue.is_empty() && !is_displaced {
            unjournaled.clear();
            drop((queue, unjournaled));
            journal.clear();
            return recorded;
        }
        if is_retry {
            unjournaled.retain(queue.items());
        }
        let is_outgrown = unjournaled.is_unsynced() || journal.lines() >= JOURNAL_LINES_PER_ITEM * self.limit;
        drop((queue, unjournaled));
        let may_append = !is_displaced && (is_retry || journal.can_append());
        let may_rewrite = is_retry || journal.can_rewrite();
        let mut is_written = is_outgrown && may_rewrite && self.rewrite(journal);
        // Little space is enough for a few lines.
        is_written = is_written || (may_append && self.append(journal));
        // A file that can no longer be written is replaced.
        if !is_written && !is_outgrown && may_rewrite {
            self.rewrite(journal);
        }
        recorded
    }

    fn append(&self, journal: &mut Journal) -> bool {
        let unjournaled = self.unjournaled();
        let (items, recorded) = (unjournaled.items(), unjournaled.recorded());
        drop(unjournaled);
        let is_written = items.is_empty() || journal.append(&items).is_ok();
        if is_written {
            self.unjournaled().written(recorded);
        }
        is_written
    }

    fn rewrite(&self, journal: &mut Journal) -> bool {
        let queue = self.queue();
        let recorded = self.unjournaled().recorded();
        let items: Vec<RetryItem> = queue.items().cloned().collect();
        drop(queue);
        let is_written = journal.rewrite(&items).is_ok();
        if is_written {
            let mut unjournaled = self.unjournaled();
            unjournaled.written(recorded);
            unjournaled.synced();
        }
        is_written
    }
}
