//! What an edge remembers of a virtual key: whose it is, which never changes; what memory its account's bodies have; and
//! when the store last refused it, so that its large bodies are not read only to be refused again.

use crate::buffer_budget::AccountPart;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::lookup::VirtualKeyOwner;

/// How long a refusal is remembered: the length of a rate window.
const REFUSAL_REMEMBERED: Duration = Duration::from_secs(60);
/// The key was not refused.
const NEVER: u64 = u64::MAX;

/// From when on refusals are timed.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A key that the store knows.
#[derive(Debug)]
pub struct KnownKey {
    /// Whose it is.
    pub owner: VirtualKeyOwner,
    /// The memory of its account's bodies.
    pub part: Arc<AccountPart>,
    /// Milliseconds from [`BEGAN`] to the last refusal.
    refused_at_ms: AtomicU64,
}

impl KnownKey {
    /// A key that was just looked up.
    #[must_use]
    pub const fn new(owner: VirtualKeyOwner, part: Arc<AccountPart>) -> Self {
        Self {
            owner,
            part,
            refused_at_ms: AtomicU64::new(NEVER),
        }
    }

    /// The store said that the key is revoked or over its rate.
    pub fn refused(&self) {
        self.refused_at_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// The store says otherwise now.
    pub fn forget_refusal(&self) {
        self.refused_at_ms.store(NEVER, Ordering::Relaxed);
    }

    /// Whether the key was refused lately. It says nothing of whether it still is.
    pub fn was_refused_lately(&self) -> bool {
        match self.refused_at_ms.load(Ordering::Relaxed) {
            NEVER => false,
            at => is_recent(at, now_ms()),
        }
    }
}

fn is_recent(at_ms: u64, now_ms: u64) -> bool {
    u128::from(now_ms.saturating_sub(at_ms)) < REFUSAL_REMEMBERED.as_millis()
}

fn now_ms() -> u64 {
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever was refused at the beginning of a rate window has room again at its end.
    #[test]
    fn a_refusal_is_recent_for_a_minute() {
        for (at, now, recent) in [(7, 7, true), (7, 60_006, true), (7, 60_007, false), (8, 7, true)] {
            assert_eq!(is_recent(at, now), recent, "{at} {now}");
        }
    }

    #[test]
    fn a_refusal_is_remembered_until_it_is_forgotten() {
        let key = KnownKey::new(VirtualKeyOwner::new("acct_1", "bot", "vk_1"), Arc::default());
        assert!(!key.was_refused_lately());
        key.refused();
        assert!(key.was_refused_lately());
        key.forget_refusal();
        assert!(!key.was_refused_lately());
    }
}
