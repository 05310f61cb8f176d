//! Cache of virtual keys and their owners. The store never changes the owner of a key, so an entry is never stale; the
//! whole cache is dropped when another ledger replaces the store's.

pub mod known_key;

use crate::account_usage::AccountUsages;
use known_key::KnownKey;
use quick_cache::sync::Cache;
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
    usages: AccountUsages,
}

impl KeyOwners {
    /// Creates a cache of at most `max` keys (`proxy.max_remembered_keys`).
    pub fn new(max: usize) -> Self {
        Self {
            known: Cache::new(max),
            unknown: Cache::new(UNKNOWN_MAX),
            usages: AccountUsages::default(),
        }
    }

    /// Returns a key that was inserted before.
    pub fn get(&self, digest: &Digest) -> Option<Arc<KnownKey>> {
        self.known.get(digest)
    }

    /// Inserts a key. All keys of an account share its [`AccountUsage`](crate::account_usage::AccountUsage).
    pub fn insert(&self, digest: Digest, owner: VirtualKeyOwner) -> Arc<KnownKey> {
        let usage = self.usages.get(owner.account());
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A second usage would give the account its share of calls and memory twice.
    #[test]
    fn an_account_in_use_keeps_its_usage_whatever_the_cache_forgets() {
        let owners = KeyOwners::new(10);
        let insert = |key: u64, account: &str| {
            let owner = VirtualKeyOwner::new(account, "bot", &format!("vk_{key}"));
            let mut digest = Digest::default();
            digest[..8].copy_from_slice(&key.to_be_bytes());
            owners.insert(digest, owner)
        };
        let in_use = insert(0, "acct_0");
        // An account with two keys is looked up twice, and so takes the place of one that was looked up once.
        for key in 1..1_000 {
            insert(key, &format!("acct_{}", 1 + key / 2));
        }
        assert!(Arc::ptr_eq(&in_use.usage, &insert(1_000, "acct_0").usage));
    }
}
