//! Newest version of each account that this process has read, or received in an acknowledgement. A store with an older
//! version lost writes (decision D47), and the account is refused until an operator accepts the loss.
//!
//! Kept in the memory of one process, shared by all clones of a [`Store`](crate::Store). Filled from replies of scripts
//! that change an account (`script/versioned.lua`, [`Store::script`](crate::Store::script)) and from reads of account
//! records.

pub mod fence;
pub mod lost;
pub mod witness;

use crate::account::Account;
use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use serde::{Deserialize, Serialize};

/// Maximum number of accounts remembered; the least recently used are dropped first.
const ACCOUNTS_KEPT: usize = 100_000;

/// Version of an account. Ordered by generation, then version: `store accept` increments the generation. The default is
/// below that of every account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct AccountVersion {
    /// Incremented by `store accept`.
    pub generation: u64,
    /// Incremented by every change; never decreases within a generation.
    pub version: u64,
}

/// A version that no account reaches, exact as a double: scripts compare versions as doubles.
const UNREACHABLE: u64 = (1 << 53) - 1;

impl AccountVersion {
    /// Returns the floor of an account that lost writes: unreachable in its `generation`, until `store accept`
    /// increments that.
    pub const fn until_accepted(generation: u64) -> Self {
        Self {
            generation,
            version: UNREACHABLE,
        }
    }

    /// Returns whether it is the floor of an account that lost writes.
    pub const fn is_until_accepted(&self) -> bool {
        self.version == UNREACHABLE
    }

    /// Returns generation and version, each as an argument of a script.
    pub(crate) fn to_args(self) -> [String; 2] {
        [self.generation, self.version].map(|number| number.to_string())
    }

    /// Returns generation and version in one argument of a script.
    pub(crate) fn to_arg(self) -> String {
        self.to_args().join(" ")
    }

    /// Returns the version in an account's record.
    pub const fn from_account(account: &Account) -> Self {
        Self {
            generation: account.generation,
            version: account.version,
        }
    }
}

/// Newest version of each account, by account id.
#[derive(Debug)]
pub struct Versions(Mutex<Cache<String, AccountVersion>>);

impl Default for Versions {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(ACCOUNTS_KEPT)))
    }
}

impl Versions {
    /// Returns the newest known version of `account`. Call it before a read: an older version in that read means a
    /// failover, not a concurrent request.
    pub fn newest(&self, account: &str) -> AccountVersion {
        let cache = self.0.lock();
        cache.get(account).copied().unwrap_or_default()
    }

    /// Records a version. Replies can overtake each other, so an older one changes nothing.
    pub fn record(&self, account: &str, view: AccountVersion) {
        let mut cache = self.0.lock();
        if cache.get(account).is_none_or(|known| *known < view) {
            cache.insert(account.to_owned(), view);
        }
    }

    /// Forgets an account whose state the operator accepts.
    pub fn forget(&self, account: &str) {
        let mut cache = self.0.lock();
        cache.remove(account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_view_stays() {
        let versions = Versions::default();
        let view = |generation, version| AccountVersion { generation, version };
        assert_eq!(versions.newest("a"), view(0, 0));
        versions.record("a", view(1, 5));
        versions.record("a", view(1, 4));
        assert_eq!(versions.newest("a"), view(1, 5));
        versions.record("a", view(2, 1));
        assert_eq!(versions.newest("a"), view(2, 1), "a new generation starts anew");
        assert_eq!(versions.newest("b"), view(0, 0));
        versions.forget("a");
        assert_eq!(versions.newest("a"), view(0, 0));
    }
}
