//! The guard's look for accounts that lost acknowledged writes (decision D47). One that is found is held until `store
//! accept`: this server and the account's witness take note of it, and the guard's list names it to all edges and
//! servers.

use crate::rotation::Rotation;
use futures::{StreamExt, stream};
use std::collections::BTreeMap;
use store::Store;
use store::account::refused::LOST_MAX;
use store::connection::batch::Batch;
use store::versions::AccountVersion;
use store::versions::lost::{self, Completeness};
use telemetry::error_chain;

/// Accounts looked at in one round, each with one field of its record and, on a cluster, one of its witness.
const ACCOUNTS: usize = 5000;
/// Witnesses told in one round …
const TOLD: usize = 256;
/// … and at the same time: each may take as long as a witness is waited for.
const AT_ONCE: usize = 16;

/// Accounts that lost writes, and which of them the last list named.
#[derive(Debug, Default)]
pub(super) struct Lost {
    rotation: Rotation,
    /// Those that wait for `store accept`, each with the generation that it raises.
    held: BTreeMap<String, u64>,
    /// The last account of the last list.
    named: String,
}

impl Lost {
    /// Looks at the next accounts. Those whose server gives no answer keep their standing. Returns what witnesses have
    /// to be told.
    pub(super) async fn look(&mut self, store: &Store) -> Vec<(String, AccountVersion)> {
        let round = Batch::new(store);
        round.note(self.rotation.renew(store).await);
        let accounts = self.rotation.next(ACCOUNTS);
        let found = lost::check(store, &round, &accounts).await;
        let untold = self.note_all(store, found);
        if let Err(error) = round.end() {
            tracing::debug!(error = %error_chain(&error), "a look for lost writes was cut off");
        }
        untold
    }

    /// Takes in how accounts stand. Returns what witnesses have to be told in this round: [`TOLD`] at most, the others
    /// when their accounts are looked at again.
    fn note_all(
        &mut self,
        store: &Store,
        found: Vec<(&String, Completeness)>,
    ) -> Vec<(String, AccountVersion)> {
        let untold = found.into_iter();
        let untold = untold.filter_map(|(account, standing)| self.note(store, account, standing));
        let mut untold: Vec<(String, AccountVersion)> = untold.collect();
        untold.truncate(TOLD);
        untold
    }

    /// Takes in how an account stands. Returns what its witness has to be told.
    fn note(
        &mut self,
        store: &Store,
        account: &str,
        standing: Completeness,
    ) -> Option<(String, AccountVersion)> {
        let Completeness::Lost {
            generation,
            is_witnessed,
        } = standing
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

    /// Count of accounts that wait for `store accept`.
    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    /// Those that the next list names: [`LOST_MAX`] at most, and of more others than the last list.
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

/// Tells the witnesses of some accounts. Those that were not reached are told when they are looked at again.
pub(super) async fn tell(store: &Store, untold: Vec<(String, AccountVersion)>) {
    let told = stream::iter(untold);
    told.for_each_concurrent(AT_ONCE, |(account, floor)| async move {
        store.update_witness(&account, floor).await;
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn held(count: usize) -> Lost {
        Lost {
            held: (0..count).map(|n| (format!("acct_{n:05}"), 1)).collect(),
            ..Lost::default()
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
    async fn all_are_held_and_some_witnesses_told() {
        let store = Store::open("redis://127.0.0.1:1", Duration::from_millis(50)).unwrap();
        let accounts: Vec<String> = (0..=TOLD).map(|n| format!("acct_{n:05}")).collect();
        let standing = Completeness::Lost {
            generation: 1,
            is_witnessed: false,
        };
        let found = accounts.iter().map(|account| (account, standing)).collect();
        let mut lost = Lost::default();
        assert_eq!(lost.note_all(&store, found).len(), TOLD);
        assert_eq!(lost.count(), TOLD + 1);
    }

    #[tokio::test]
    async fn an_account_is_held_until_it_is_sound_in_a_new_generation() {
        let store = Store::open("redis://127.0.0.1:1", Duration::from_millis(50)).unwrap();
        let mut lost = Lost::default();
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
        assert_eq!(lost.note(&store, "a", found(true)), None, "it was told");
        assert_eq!(lost.next(), [("a".to_owned(), 3)].into());
        assert_eq!(lost.note(&store, "a", Completeness::Sound), None);
        assert_eq!((lost.count(), lost.next().len()), (0, 0));
    }
}
