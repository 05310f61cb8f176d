//! A virtual key in the cache: its owner, the resource usage of the owner's account, and the time of the store's last
//! rejection of the key. With this time the edge need not read a large body only to reject it again.

use crate::account_usage::AccountUsage;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use store::keys::Bucket;
use store::lookup::VirtualKeyOwner;

/// Time that a rejection counts as recent: the length of a rate window.
const REJECTION_LIFE: Duration = Duration::from_secs(60);
/// Value of `rejected_at_ms` for a key that was not rejected.
const NEVER: u64 = u64::MAX;

/// Origin of `rejected_at_ms`.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A key that exists in the store.
#[derive(Debug)]
pub struct KnownKey {
    /// Immutable in the store.
    pub owner: VirtualKeyOwner,
    /// The bucket of the owner's account.
    pub bucket: Bucket,
    /// Shared by all keys of the account.
    pub usage: Arc<AccountUsage>,
    /// Time of the last rejection, in milliseconds since [`STARTED`].
    rejected_at_ms: AtomicU64,
}

impl KnownKey {
    /// Creates a key that was not rejected yet.
    pub fn new(owner: VirtualKeyOwner, usage: Arc<AccountUsage>) -> Self {
        Self {
            bucket: Bucket::from_account(owner.account()),
            owner,
            usage,
            rejected_at_ms: AtomicU64::new(NEVER),
        }
    }

    /// Records that the store reported the key as revoked or over its rate.
    pub fn record_rejection(&self) {
        self.rejected_at_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// Forgets the last rejection.
    pub fn clear_rejection(&self) {
        self.rejected_at_ms.store(NEVER, Ordering::Relaxed);
    }

    /// Returns whether the last rejection is recent. The store may already accept the key again.
    pub fn was_recently_rejected(&self) -> bool {
        match self.rejected_at_ms.load(Ordering::Relaxed) {
            NEVER => false,
            at => is_recent(at, now_ms()),
        }
    }
}

fn is_recent(at_ms: u64, now_ms: u64) -> bool {
    u128::from(now_ms.saturating_sub(at_ms)) < REJECTION_LIFE.as_millis()
}

fn now_ms() -> u64 {
    u64::try_from(STARTED.elapsed().as_millis()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_rejection_passes() {
        let before = now_ms();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(now_ms() > before);
    }

    /// A key that was rejected at the start of a rate window may be used again at its end.
    #[test]
    fn a_rejection_is_recent_for_a_minute() {
        for (at, now, recent) in [(7, 7, true), (7, 60_006, true), (7, 60_007, false), (8, 7, true)] {
            assert_eq!(is_recent(at, now), recent, "{at} {now}");
        }
    }

    #[test]
    fn a_rejection_is_recorded_until_it_is_cleared() {
        let key = KnownKey::new(VirtualKeyOwner::new("acct_1", "bot", "vk_1"), Arc::default());
        assert!(!key.was_recently_rejected());
        key.record_rejection();
        assert!(key.was_recently_rejected());
        key.clear_rejection();
        assert!(!key.was_recently_rejected());
    }
}
