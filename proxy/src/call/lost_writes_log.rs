//! Counts the decisions that are refused since the store lost writes of an account, and logs it once, not for each
//! call.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use store::call::authorize::AccountView;
use store::versions::AccountVersion;

/// Maximum number of accounts remembered; with one more they are forgotten, and logged again.
const ACCOUNTS_MAX: usize = 1000;

/// The accounts that were logged and whose writes are still lost.
#[derive(Default)]
pub struct LostWritesLog {
    accounts: Mutex<HashSet<String>>,
    /// Their number: each call reads it, and takes the lock only if there are any.
    count: AtomicUsize,
    /// Refused decisions.
    refusals: AtomicU64,
}

impl LostWritesLog {
    /// Records that a decision was refused, since the store has `found` and this process knows `known`.
    pub fn record_refusal(&self, account: &str, known: &AccountView, found: &AccountView) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        if !self.insert(account) {
            return;
        }
        tracing::error!(
            account,
            known_version = known_version(known),
            version = found.version,
            "the store lost writes of this account; its calls are denied until `tollgate-admin store accept`"
        );
    }

    /// Returns the count of refused decisions.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Records that the store decided: a later loss is logged again.
    pub fn record_decision(&self, account: &str) {
        if self.count.load(Ordering::Relaxed) > 0 {
            let mut accounts = self.accounts.lock();
            accounts.remove(account);
            self.count.store(accounts.len(), Ordering::Relaxed);
        }
    }

    /// Remembers the account. Returns false if it was logged already.
    fn insert(&self, account: &str) -> bool {
        let mut accounts = self.accounts.lock();
        if accounts.contains(account) {
            return false;
        }
        if accounts.len() == ACCOUNTS_MAX {
            accounts.clear();
        }
        accounts.insert(account.to_owned());
        self.count.store(accounts.len(), Ordering::Relaxed);
        true
    }
}

/// Returns the version that this process knows; `None` if it only knows that writes are lost.
fn known_version(known: &AccountView) -> Option<u64> {
    let version = AccountVersion {
        generation: known.generation,
        version: known.version,
    };
    (!version.is_until_accepted()).then_some(known.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_logged_once_while_its_writes_are_lost() {
        let log = LostWritesLog::default();
        assert!(log.insert("acct_1"), "the first call");
        assert!(!log.insert("acct_1"), "and no other one");
        assert!(log.insert("acct_2"));
        log.record_decision("acct_1");
        assert!(log.insert("acct_1"), "lost again");
        assert!(!log.insert("acct_2"));
    }

    #[test]
    fn the_log_is_bounded() {
        let log = LostWritesLog::default();
        for n in 0..3 * ACCOUNTS_MAX {
            log.insert(&format!("acct_{n}"));
        }
        assert!(log.accounts.lock().len() <= ACCOUNTS_MAX);
    }

    #[test]
    fn a_placeholder_is_no_known_version() {
        let view = |version: AccountVersion| AccountView {
            generation: version.generation,
            version: version.version,
            plan: String::new(),
        };
        assert_eq!(known_version(&view(AccountVersion::until_accepted(3))), None);
        let known = AccountVersion {
            generation: 3,
            version: 7,
        };
        assert_eq!(known_version(&view(known)), Some(7));
    }
}
