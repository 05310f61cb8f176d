//! The guard's search for accounts that lost acknowledged writes (decision D47). An account that is found is refused
//! until `store accept`: this server and the account's witness record it, and the guard's list reports it to all edges
//! and servers.

use crate::rotation::Rotation;
use futures::{StreamExt, stream};
use std::collections::BTreeMap;
use store::Store;
use store::account::refused::LOST_MAX;
use store::connection::batch::Batch;
use store::versions::lost::{self, Completeness};
use store::versions::{AccountVersion, Versions};
use telemetry::error_chain;

/// Number of accounts checked in one round, each with one field of its record and, on a cluster, one of its witness.
const ACCOUNTS: usize = 5000;
/// Maximum number of witnesses updated in one round …
const WITNESSES_MAX: usize = 256;
/// … and concurrently: each update may take the whole time-out of a witness.
const AT_ONCE: usize = 16;

/// Accounts that lost writes, and those named in the last list.
#[derive(Debug, Default)]
pub(super) struct LostWrites {
    rotation: Rotation,
    /// The versions that were read so far.
    checked: Versions,
    /// Accounts that wait for `store accept`, each with the generation that it will raise.
    held: BTreeMap<String, u64>,
    /// The last account of the last list.
    named: String,
}

impl LostWrites {
    /// Checks the next accounts. Those whose server does not reply keep their state. Returns the versions that their
    /// witnesses must record.
    pub(super) async fn check_next(&mut self, store: &Store) -> Vec<(String, AccountVersion)> {
        let batch = Batch::new(store);
        batch.note(self.rotation.renew(store).await);
        let accounts = self.rotation.next(ACCOUNTS);
        let found = lost::check(store, &batch, &accounts, &self.checked).await;
        let unwitnessed = self.note_all(store, found);
        if let Err(error) = batch.end() {
            tracing::debug!(error = %error_chain(&error), "a server did not reply to the check for lost writes");
        }
        unwitnessed
    }

    /// Holds the accounts that lost writes and releases the others. Returns the versions that witnesses must record in
    /// this round, at most [`WITNESSES_MAX`]; the others are recorded when their accounts are checked again.
    fn note_all(
        &mut self,
        store: &Store,
        found: Vec<(&String, Completeness)>,
    ) -> Vec<(String, AccountVersion)> {
        let unwitnessed = found.into_iter();
        let unwitnessed =
            unwitnessed.filter_map(|(account, completeness)| self.note(store, account, completeness));
        let mut unwitnessed: Vec<(String, AccountVersion)> = unwitnessed.collect();
        unwitnessed.truncate(WITNESSES_MAX);
        unwitnessed
    }

    /// Holds or releases an account. Returns the version that its witness must record.
    fn note(
        &mut self,
        store: &Store,
        account: &str,
        completeness: Completeness,
    ) -> Option<(String, AccountVersion)> {
        let Completeness::Lost {
            generation,
            is_witnessed,
        } = completeness
        else {
            self.held.remove(account);
            return None;
        };
        let floor = AccountVersion::until_accepted(generation);
        store.versions().record(account, floor);
        if self.held.insert(account.to_owned(), generation).is_none() {
            tracing::error!(
                account,
                "the store lost writes of this account; its calls are denied until `tollgate-admin store accept`"
            );
        }
        (!is_witnessed).then(|| (account.to_owned(), floor))
    }

    /// Returns the number of accounts that wait for `store accept`.
    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    /// Returns the accounts for the next list, at most [`LOST_MAX`]; if there are more, others than in the last list.
    pub(super) fn next(&mut self) -> BTreeMap<String, u64> {
        let behind = self
            .held
            .range::<String, _>(&self.named..)
            .skip_while(|(id, _)| **id == self.named);
        let before = self.held.range::<String, _>(..=&self.named);
        let next: Vec<_> = behind.chain(before).take(LOST_MAX).collect();
        let next: Vec<(String, u64)> = next.into_iter().map(|(id, of)| (id.clone(), *of)).collect();
        self.named = next.last().map(|(id, _)| id.clone()).unwrap_or_default();
        next.into_iter().collect()
    }
}

/// Updates the witnesses of these accounts. Unreachable ones are updated when their accounts are checked again.
pub(super) async fn update_witnesses(store: &Store, unwitnessed: Vec<(String, AccountVersion)>) {
    let updates = stream::iter(unwitnessed);
    updates
        .for_each_concurrent(AT_ONCE, |(account, floor)| async move {
            store.update_witness(&account, floor).await;
        })
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn held(count: usize) -> LostWrites {
        LostWrites {
            held: (0..count).map(|n| (format!("acct_{n:05}"), 1)).collect(),
            ..LostWrites::default()
        }
    }

    #[test]
    fn a_list_that_has_room_names_all_each_time() {
        for count in [0, 1, LOST_MAX] {
            let mut lost = held(count);
            for _ in 0..3 {
                assert_eq!(lost.next().len(), count);
            }
        }
    }

    #[test]
    fn of_more_than_fit_each_has_its_turn() {
        let mut lost = held(2 * LOST_MAX + 1);
        let mut named = BTreeSet::new();
        for _ in 0..3 {
            let next = lost.next();
            assert_eq!(next.len(), LOST_MAX);
            named.extend(next.into_keys());
        }
        assert_eq!(named.len(), lost.count());
    }

    #[tokio::test]
    async fn all_are_held_and_some_witnesses_updated() {
        let store = Store::open("redis://127.0.0.1:1", Duration::from_millis(50)).unwrap();
        let accounts: Vec<String> = (0..=WITNESSES_MAX).map(|n| format!("acct_{n:05}")).collect();
        let completeness = Completeness::Lost {
            generation: 1,
            is_witnessed: false,
        };
        let found = accounts.iter().map(|account| (account, completeness)).collect();
        let mut lost = LostWrites::default();
        assert_eq!(lost.note_all(&store, found).len(), WITNESSES_MAX);
        assert_eq!(lost.count(), WITNESSES_MAX + 1);
    }

    #[tokio::test]
    async fn an_account_is_held_until_it_is_sound_in_a_new_generation() {
        let store = Store::open("redis://127.0.0.1:1", Duration::from_millis(50)).unwrap();
        let mut lost = LostWrites::default();
        let found = |is_witnessed| Completeness::Lost {
            generation: 3,
            is_witnessed,
        };
        let floor = AccountVersion::until_accepted(3);
        assert_eq!(
            lost.note(&store, "a", found(false)),
            Some(("a".to_owned(), floor))
        );
        assert_eq!(store.versions().newest("a"), floor);
        assert_eq!(
            lost.note(&store, "a", found(true)),
            None,
            "its witness has recorded it"
        );
        assert_eq!(lost.next(), [("a".to_owned(), 3)].into());
        assert_eq!(lost.note(&store, "a", Completeness::Sound), None);
        assert_eq!((lost.count(), lost.next().len()), (0, 0));
    }
}
