//! What an edge remembers of a virtual key: whose it is, which never changes; what memory its account's bodies have; and
//! when the store last refused it, so that its large bodies are not read only to be refused again.

use super::receive::room::AccountPart;
use shared::store::lookup::VirtualKeyOwner;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
            at => {
                now_ms().saturating_sub(at) < u64::try_from(REFUSAL_REMEMBERED.as_millis()).unwrap_or(NEVER)
            }
        }
    }
}

fn now_ms() -> u64 {
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(NEVER - 1)
}
