//! Cache of virtual keys and their owners. The store never changes the owner of a key, so an entry is never stale; the
//! whole cache is dropped when another ledger replaces the store's.

pub mod known_key;

use crate::account_usage::AccountUsage;
use known_key::KnownKey;
use quick_cache::sync::Cache;
use std::convert::Infallible;
use std::sync::Arc;
use store::lookup::VirtualKeyOwner;

/// Entries of the negative cache.
const UNKNOWN_MAX: usize = 10_000;

/// SHA-256 of a virtual key.
pub type Digest = [u8; 32];

/// Cache of virtual keys and their owners, both known and unknown.
pub struct KeyOwners {
    known: Cache<Digest, Arc<KnownKey>>,
    /// Negative cache: repeated guesses never reach the store. Keys are random, so an unknown key does not come into
    /// existence later.
    unknown: Cache<Digest, ()>,
    usages: Cache<String, Arc<AccountUsage>>,
}

impl KeyOwners {
    /// Creates a cache of at most `max` keys (`proxy.max_remembered_keys`).
    pub fn new(max: usize) -> Self {
        Self {
            known: Cache::new(max),
            unknown: Cache::new(UNKNOWN_MAX),
            usages: Cache::new(max),
        }
    }

    /// Returns a key that was inserted before.
    pub fn get(&self, digest: &Digest) -> Option<Arc<KnownKey>> {
        self.known.get(digest)
    }

    /// Inserts a key. All keys of an account share its [`AccountUsage`].
    pub fn insert(&self, digest: Digest, owner: VirtualKeyOwner) -> Arc<KnownKey> {
        let first = || Ok::<_, Infallible>(Arc::default());
        let Ok(usage) = self.usages.get_or_insert_with(owner.account(), first);
        let known = Arc::new(KnownKey::new(owner, usage));
        self.known.insert(digest, Arc::clone(&known));
        known
    }

    /// Returns whether the store has reported that this key does not exist.
    pub fn is_unknown(&self, digest: &Digest) -> bool {
        self.unknown.get(digest).is_some()
    }

    /// Inserts the digest of a key that does not exist.
    pub fn insert_unknown(&self, digest: Digest) {
        self.unknown.insert(digest, ());
    }

    /// Forgets all keys, known and unknown: they belong to another ledger.
    pub fn clear(&self) {
        self.known.clear();
        self.unknown.clear();
    }

    /// Returns the numbers of known and of unknown keys in the cache.
    pub fn sizes(&self) -> [usize; 2] {
        [self.known.len(), self.unknown.len()]
    }
}
