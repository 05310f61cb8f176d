//! A server's copy of the list, so that a call pays nothing for it.

use super::{Cause, LIFE, RefusedLists, read};
use crate::Store;
use crate::versions::AccountVersion;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::time::Instant;

/// A server's cached copy of the list.
#[derive(Debug, Default)]
pub struct RefusedCopy(ArcSwap<CopiedLists>);

#[derive(Debug, Default)]
struct CopiedLists {
    list: RefusedLists,
    read_at: Option<Instant>,
}

impl RefusedCopy {
    /// Returns why an account may not create records; `None` if it may.
    pub fn cause(&self, account: &str) -> Option<Cause> {
        let copied = self.0.load();
        if copied.list.room.is_empty() {
            return None;
        }
        copied.list.room.get(account).copied()
    }

    /// Returns the accounts that lost writes, with the generation that `store accept` increments.
    pub fn lost(&self) -> Vec<(String, u64)> {
        let copied = self.0.load();
        let lost = copied.list.lost.iter();
        lost.map(|(account, generation)| (account.clone(), *generation))
            .collect()
    }

    /// Refreshes the copy, and makes `store` refuse changes of accounts that lost writes. While the store does not
    /// reply, the last copy is used for [`LIFE`].
    pub async fn refresh(&self, store: &Store) {
        match read(store).await {
            Ok(list) => {
                for (account, generation) in &list.lost {
                    store
                        .versions()
                        .record(account, AccountVersion::until_accepted(*generation));
                }
                if !list.is_empty() || !self.0.load().list.is_empty() {
                    self.take(list);
                }
            }
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the refused accounts cannot be read"
                );
                if self.0.load().read_at.is_some_and(|at| at.elapsed() > LIFE) {
                    self.0.store(Arc::default());
                }
            }
        }
    }

    fn take(&self, list: RefusedLists) {
        if self.0.load().list != list {
            tracing::warn!(
                accounts = list.room.len(),
                lost_writes = list.lost.len(),
                "accounts that are refused"
            );
        }
        let read_at = Some(Instant::now());
        self.0.store(Arc::new(CopiedLists { list, read_at }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_copy_refuses_whom_the_list_names() {
        let copy = RefusedCopy::default();
        assert_eq!(copy.cause("acct_1"), None);
        copy.take(RefusedLists::parse("acct_1 share"));
        assert_eq!(copy.cause("acct_1"), Some(Cause::Share));
        assert_eq!(copy.cause("acct_2"), None);
        copy.take(RefusedLists::parse("acct_2 lost_writes 3"));
        assert_eq!(
            (copy.cause("acct_2"), copy.lost()),
            (None, vec![("acct_2".to_owned(), 3)])
        );
        copy.take(RefusedLists::default());
        assert_eq!(copy.cause("acct_1"), None);
    }

    /// The last copy is used for a limited time after the store becomes unreachable.
    #[tokio::test]
    async fn a_store_that_is_away_ends_the_list_after_its_life() {
        let store = Store::open("redis://127.0.0.1:1", Duration::from_millis(50)).unwrap();
        let copy = RefusedCopy::default();
        copy.take(RefusedLists::parse("acct_1 share"));
        copy.refresh(&store).await;
        assert_eq!(copy.cause("acct_1"), Some(Cause::Share));
        let old = CopiedLists {
            list: RefusedLists::parse("acct_1 share"),
            read_at: Instant::now().checked_sub(LIFE + Duration::from_secs(1)),
        };
        copy.0.store(Arc::new(old));
        copy.refresh(&store).await;
        assert_eq!(copy.cause("acct_1"), None);
    }
}
