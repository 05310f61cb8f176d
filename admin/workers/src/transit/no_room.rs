//! Rows whose money does not fit into the receiving wallet, with the time of their next try. Kept only in memory: a
//! server that starts tries each once.

use domain::mode::Mode;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use store::keys::Bucket;
use tokio::time::Instant;

/// Pause after the first try. Each further try doubles it …
const PAUSE_FIRST: Duration = Duration::from_secs(2);
/// … up to this, so that money arrives within this time once there is room.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// The rows of all buckets.
#[derive(Debug, Default)]
pub(super) struct NoRoomAccounts(Mutex<BTreeMap<Bucket, NoRoom>>);

impl NoRoomAccounts {
    /// Removes and returns the rows of a bucket.
    pub(super) fn take(&self, bucket: Bucket) -> NoRoom {
        let mut all = self.0.lock();
        all.remove(&bucket).unwrap_or_default()
    }

    /// Puts the rows of a bucket back.
    pub(super) fn keep(&self, bucket: Bucket, rows: NoRoom) {
        if !rows.0.is_empty() {
            let mut all = self.0.lock();
            all.insert(bucket, rows);
        }
    }
}

/// The rows of one bucket, by id.
#[derive(Debug, Default)]
pub(super) struct NoRoom(HashMap<String, NextTry>);

#[derive(Debug)]
struct NextTry {
    mode: Mode,
    due: Instant,
    pause: Duration,
}

impl NoRoom {
    /// Returns whether a row must be tried now.
    pub(super) fn is_due(&self, id: &str, now: Instant) -> bool {
        self.0.get(id).is_none_or(|row| row.due <= now)
    }

    /// Forgets the rows that no longer exist.
    pub(super) fn retain(&mut self, ids: &[String]) {
        if !self.0.is_empty() {
            let ids: HashSet<&String> = ids.iter().collect();
            self.0.retain(|id, _| ids.contains(id));
        }
    }

    /// Records that the money of a row found no room. Returns true for the first time.
    pub(super) fn refused(&mut self, id: &str, mode: Mode, now: Instant) -> bool {
        let earlier = self.0.get(id).map(|row| row.pause);
        let pause = earlier.map_or(PAUSE_FIRST, |pause| (pause * 2).min(PAUSE_MAX));
        let due = now + pause;
        self.0.insert(id.to_owned(), NextTry { mode, due, pause });
        earlier.is_none()
    }

    /// Forgets a row.
    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Returns the number of waiting rows, in the order of [`Mode::ALL`].
    pub(super) fn counts(&self) -> [u64; Mode::ALL.len()] {
        Mode::ALL.map(|mode| self.0.values().filter(|row| row.mode == mode).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_try_doubles_the_pause_up_to_its_bound() {
        let mut rows = NoRoom::default();
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for tries in 0..10 {
            assert!(rows.is_due("a", now), "a row that is not known is tried at once");
            assert_eq!(rows.refused("a", Mode::Test, now), tries == 0);
            let pause = rows.0["a"].pause;
            assert!(!rows.is_due("a", now + pause - Duration::from_millis(1)));
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn rows_are_counted_by_mode_and_forgotten_with_their_end() {
        let now = Instant::now();
        let no_room_accounts = NoRoomAccounts::default();
        let bucket = Bucket::all().next().unwrap();
        let mut rows = no_room_accounts.take(bucket);
        for (id, mode) in [("a", Mode::Test), ("b", Mode::Live), ("c", Mode::Test)] {
            rows.refused(id, mode, now);
        }
        assert_eq!(rows.counts(), [1, 2]);
        no_room_accounts.keep(bucket, rows);
        let mut rows = no_room_accounts.take(bucket);
        rows.retain(&["a".to_owned(), "c".to_owned(), "d".to_owned()]);
        assert_eq!(rows.counts(), [0, 2]);
        rows.forget("a");
        assert_eq!(rows.counts(), [0, 1]);
        assert!(rows.is_due("a", now) && !rows.is_due("c", now));
        assert_eq!(no_room_accounts.take(bucket).counts(), [0, 0], "it was taken out");
    }
}
