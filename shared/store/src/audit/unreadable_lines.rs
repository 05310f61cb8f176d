//! Lines of audit trails that this process sealed without being able to parse them: somebody changed the store. They
//! are counted, and logged once for each trail. Shared by all handles on the store, since readers seal as well as
//! workers.

use crate::keys::Realm;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of trails remembered; with one more they are forgotten, and logged again.
const TRAILS_MAX: usize = 1000;

static COUNT: AtomicU64 = AtomicU64::new(0);
static LOGGED: LoggedTrails = LoggedTrails(Mutex::new(BTreeSet::new()));

/// The trails whose unreadable lines were logged, by account and mode.
struct LoggedTrails(Mutex<BTreeSet<String>>);

impl LoggedTrails {
    /// Returns whether the trail is new, and remembers it.
    fn insert(&self, trail: String) -> bool {
        let mut trails = self.0.lock();
        if trails.len() == TRAILS_MAX && !trails.contains(&trail) {
            trails.clear();
        }
        trails.insert(trail)
    }
}

/// Counts `lines` unreadable lines that were sealed, the first of which has the number `first`. Logs the first of each
/// trail.
pub(super) fn sealed(realm: &Realm, first: u64, lines: u64) {
    COUNT.fetch_add(lines, Ordering::Relaxed);
    let (account, mode) = (realm.account(), realm.mode());
    if LOGGED.insert(format!("{account} {mode}")) {
        tracing::error!(
            account,
            %mode,
            entry = first,
            lines,
            "lines of an audit trail cannot be read, since somebody changed the store; further ones are only counted"
        );
    }
}

/// Returns the count since the start of this process.
pub fn count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trail_is_logged_once_and_a_bounded_number_is_remembered() {
        let logged = LoggedTrails(Mutex::default());
        let trail = |n: usize| format!("acct_{n} live");
        for n in 0..TRAILS_MAX {
            assert!(logged.insert(trail(n)), "{n}");
        }
        assert!((0..TRAILS_MAX).all(|n| !logged.insert(trail(n))), "all are known");
        assert!(logged.insert(trail(TRAILS_MAX)));
        assert_eq!(logged.0.lock().len(), 1, "the others were forgotten");
        assert!(logged.insert(trail(0)), "and are logged again");
    }
}
