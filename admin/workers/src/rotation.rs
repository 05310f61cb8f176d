//! All accounts in rotation, for workers that read some of them in each round.

use std::collections::{HashSet, VecDeque};
use store::account::Account;
use store::{Store, StoreError};

/// Rounds after which the list of accounts is read although its length is unchanged: a failover can lose an account,
/// and a new one then makes the count equal again.
const ROUNDS_BETWEEN_READS: u32 = 100;

/// The accounts, in the order of their turns.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    turns: VecDeque<String>,
    /// Rounds since the list of accounts was read.
    rounds: u32,
}

impl Rotation {
    /// Adds new accounts behind all others, and removes those that vanished.
    pub(super) async fn renew(&mut self, store: &Store) -> Result<(), StoreError> {
        if self.is_outdated(Account::count(store).await?) {
            self.merge(Account::ids(store).await?);
        }
        Ok(())
    }

    /// Begins a round in which the store has `count` accounts. Returns whether their list is to be read.
    fn is_outdated(&mut self, count: usize) -> bool {
        self.rounds += 1;
        count != self.turns.len() || self.rounds >= ROUNDS_BETWEEN_READS
    }

    /// Keeps the order of the known accounts: sorted anew with each new account, the last ones would never have a turn.
    pub(super) fn merge(&mut self, ids: Vec<String>) {
        let mut unknown: HashSet<&str> = ids.iter().map(String::as_str).collect();
        self.turns.retain(|id| unknown.remove(id.as_str()));
        let added = ids.iter().filter(|id| unknown.contains(id.as_str()));
        self.turns.extend(added.cloned());
        self.rounds = 0;
    }

    /// Returns the number of accounts.
    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    /// Returns the next accounts, at most `most`, without duplicates.
    pub(super) fn next(&mut self, most: usize) -> Vec<String> {
        let count = most.min(self.turns.len());
        let accounts = self.turns.iter().take(count).cloned().collect();
        self.turns.rotate_left(count);
        accounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_account_has_one_turn_per_round() {
        let mut rotation = Rotation::default();
        rotation.merge(ids("a b c"));
        assert_eq!(rotation.next(2), ["a", "b"]);
        assert_eq!(rotation.next(2), ["c", "a"]);
        assert_eq!(rotation.next(9), ["b", "c", "a"]);
        assert!(Rotation::default().next(1).is_empty());
    }

    /// With a new account in each round, every account still has its turn.
    #[test]
    fn a_new_account_comes_last_and_a_lost_one_leaves() {
        let mut rotation = Rotation::default();
        rotation.merge(ids("a b c"));
        assert_eq!(rotation.next(2), ["a", "b"]);
        rotation.merge(ids("0 a b c d"));
        assert_eq!(rotation.next(2), ["c", "a"]);
        rotation.merge(ids("0 00 a b d"));
        assert_eq!(rotation.next(9), ["b", "0", "d", "a", "00"]);
    }

    #[test]
    fn the_list_is_read_with_another_length_and_after_some_rounds() {
        let mut rotation = Rotation::default();
        assert!(!rotation.is_outdated(0));
        assert!(rotation.is_outdated(1));
        rotation.merge(ids("a"));
        let read = (1..=ROUNDS_BETWEEN_READS).filter(|_| rotation.is_outdated(1));
        assert_eq!(read.collect::<Vec<_>>(), [ROUNDS_BETWEEN_READS]);
    }
}
