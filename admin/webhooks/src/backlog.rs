//! In-process list of chains whose next entries are in the archive. Best effort: the sealer finds again those that are
//! missing here.

use parking_lot::Mutex;
use std::collections::HashSet;
use store::keys::Realm;

/// Maximum number of chains remembered.
const BEHIND_MAX: usize = 10_000;

/// The chains, without duplicates.
#[derive(Debug, Default)]
pub struct DispatchBacklog(Mutex<HashSet<Realm>>);

impl DispatchBacklog {
    /// Adds a chain, unless there is no room.
    pub fn push(&self, realm: Realm) {
        let mut chains = self.0.lock();
        if chains.len() < BEHIND_MAX {
            chains.insert(realm);
        }
    }

    /// Takes all of them.
    pub fn take(&self) -> HashSet<Realm> {
        std::mem::take(&mut self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::mode::Mode;

    #[test]
    fn a_chain_is_there_once_and_their_number_is_bounded() {
        let behind = DispatchBacklog::default();
        for number in (0..BEHIND_MAX + 5).chain(0..5) {
            behind.push(Realm::new(&format!("acct_{number}"), Mode::Live));
        }
        assert_eq!(behind.take().len(), BEHIND_MAX);
        assert!(behind.take().is_empty());
    }
}
