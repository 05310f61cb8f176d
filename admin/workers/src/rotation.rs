//! All accounts in rotation, for workers that read some of them in each round.

use std::collections::VecDeque;
use store::account::Account;
use store::{Store, StoreError};

/// The accounts, in the order of their turns.
#[derive(Debug, Default)]
pub(super) struct Rotation(VecDeque<String>);

impl Rotation {
    /// Adds new accounts. Accounts are never deleted, so a changed count means new ones.
    pub(super) async fn renew(&mut self, store: &Store) -> Result<(), StoreError> {
        if Account::count(store).await? != self.0.len() {
            self.0 = Account::ids(store).await?.into();
        }
        Ok(())
    }

    /// Returns the next accounts, at most `most`, without duplicates.
    pub(super) fn next(&mut self, most: usize) -> Vec<String> {
        let count = most.min(self.0.len());
        let accounts = self.0.iter().take(count).cloned().collect();
        self.0.rotate_left(count);
        accounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_account_has_one_turn_per_round() {
        let mut rotation = Rotation(["a", "b", "c"].map(str::to_owned).into());
        assert_eq!(rotation.next(2), ["a", "b"]);
        assert_eq!(rotation.next(2), ["c", "a"]);
        assert_eq!(rotation.next(9), ["b", "c", "a"]);
        assert!(Rotation::default().next(1).is_empty());
    }
}
