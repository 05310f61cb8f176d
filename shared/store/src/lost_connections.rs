//! Lost connections since the last full check of the store. After one, another server may reply: one that was restored
//! from a backup, or that started without its last writes.

use crate::{Store, error_counters};
use std::sync::atomic::{AtomicU64, Ordering};

/// Value in place of a count: no check has passed yet.
const NEVER: u64 = u64::MAX;

/// The count of lost connections before the last full check that the store passed.
#[derive(Debug)]
pub struct LostConnections(AtomicU64);

impl Default for LostConnections {
    fn default() -> Self {
        Self(AtomicU64::new(NEVER))
    }
}

impl LostConnections {
    /// Returns the current count, to be read before a full check: a connection may break during the check.
    pub fn count() -> u64 {
        error_counters::connections_lost()
    }

    /// Records that the store passed a full check. `before` is the [`count`](Self::count) before it.
    pub fn record_passed(&self, before: u64) {
        self.0.store(before, Ordering::Release);
    }

    /// Returns whether the store has passed a full check.
    pub fn has_passed(&self) -> bool {
        self.0.load(Ordering::Acquire) != NEVER
    }

    /// Returns whether the store passed no full check yet, or whether a connection broke since the last one. A broken
    /// connection does not count in a cluster, where the next background check is soon enough: an unreachable node must
    /// not delay the accounts of the others.
    pub fn since_check(&self, store: &Store) -> bool {
        !self.has_passed() || Self::since(self.0.load(Ordering::Acquire), store)
    }

    /// Like [`since_check`](Self::since_check), for the caller's own [`count`](Self::count).
    pub fn since(before: u64, store: &Store) -> bool {
        before != Self::count() && !store.is_cluster()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_store_without_a_passed_check_has_to_be_checked() {
        for url in ["redis://127.0.0.1:1", "redis-cluster://127.0.0.1:1"] {
            let store = Store::open(url, Duration::from_millis(1)).unwrap();
            let lost_connections = LostConnections::default();
            assert!(lost_connections.since_check(&store), "{url}");
            lost_connections.record_passed(LostConnections::count());
            assert!(!lost_connections.since_check(&store), "{url}");
        }
    }
}
