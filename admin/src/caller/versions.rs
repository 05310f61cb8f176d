//! What was last seen of each account. A store that shows less than that has lost writes (decision D47).

use super::lost;
use crate::problem::Problem;
use crate::serve::App;
use quick_cache::unsync::Cache;
use shared::store::account::Account;
use std::sync::{Mutex, PoisonError};

/// Accounts remembered; the least used ones are forgotten first.
const ACCOUNTS_KEPT: usize = 100_000;

/// How far an account has come. Ordered by generation, then version: an operator who accepts a store that lost writes
/// raises the generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct View {
    /// Raised by `store accept`.
    pub generation: u64,
    /// Raised by every change.
    pub version: u64,
}

impl View {
    /// How far an account has come that was just read.
    #[must_use]
    pub const fn of(account: &Account) -> Self {
        Self {
            generation: account.generation,
            version: account.version,
        }
    }

    /// Remembers this view, unless it shows less than `floor`, which was seen before it was read.
    ///
    /// # Errors
    /// 503 for an account that lost writes.
    pub fn require(self, app: &App, floor: Self, account: &str) -> Result<(), Problem> {
        if self < floor {
            return Err(lost(account));
        }
        app.versions.saw(account, self);
        Ok(())
    }
}

/// The newest view of each account.
#[derive(Debug)]
pub struct Versions(Mutex<Cache<String, View>>);

impl Default for Versions {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(ACCOUNTS_KEPT)))
    }
}

impl Versions {
    /// The newest view of `account` so far.
    pub fn seen(&self, account: &str) -> View {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(account).copied().unwrap_or_default()
    }

    /// Remembers a view. Answers can overtake each other, so an older one changes nothing.
    pub fn saw(&self, account: &str, view: View) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.get(account).is_none_or(|known| *known < view) {
            cache.insert(account.to_owned(), view);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_view_stays() {
        let versions = Versions::default();
        let view = |generation, version| View { generation, version };
        assert_eq!(versions.seen("a"), view(0, 0));
        versions.saw("a", view(1, 5));
        versions.saw("a", view(1, 4));
        assert_eq!(versions.seen("a"), view(1, 5));
        versions.saw("a", view(2, 1));
        assert_eq!(versions.seen("a"), view(2, 1), "a new generation starts anew");
        assert_eq!(versions.seen("b"), view(0, 0));
    }
}
