//! The whole audit trail of an account and mode as readers see it: complete, in order, newest first in lists.

use shared::domain::entry::Sealed;
use shared::domain::mode::Mode;
use shared::store::chain::{Chain, Filter, Head};
use shared::store::page::Page;
use shared::store::{Store, StoreError};

/// Entries read in one go.
const READ_BATCH: u64 = 500;

/// A handle on one trail.
#[derive(Debug, Clone)]
pub struct Trail<'a> {
    chain: Chain<'a>,
}

impl<'a> Trail<'a> {
    /// The trail of `account` in `mode`.
    #[must_use]
    pub fn of(store: &'a Store, account: &str, mode: Mode) -> Self {
        let chain = Chain::of(store, account, mode);
        Self { chain }
    }

    /// Seals everything that has happened until now; its end.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn seal(&self) -> Result<Head, StoreError> {
        self.chain.seal().await
    }

    /// The entries on a page, newest first, and how many match in all. Everything that happened until now is among them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list(&self, filter: Filter<'_>, page: Page) -> Result<(Vec<Sealed>, u64), StoreError> {
        self.seal().await?;
        let many = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let (numbers, total) = self
            .chain
            .numbers(filter, many(page.offset), many(page.limit))
            .await?;
        let mut entries = self.entries(&numbers).await?;
        entries.reverse();
        Ok((entries, total))
    }

    /// Entries from `first` on, ascending, at least one unless `first` lies behind the end, and at most some hundred.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read(&self, first: u64) -> Result<Vec<Sealed>, StoreError> {
        self.chain.read(first, READ_BATCH).await
    }

    /// The entry of this number, wherever it is; `None` when it is not sealed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn entry(&self, seq: u64) -> Result<Option<Sealed>, StoreError> {
        Ok(self.entries(&[seq]).await?.into_iter().next())
    }

    /// The entries of a decision, oldest first: one, or two when a kept charge was corrected.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn decision(&self, id: &str) -> Result<Vec<Sealed>, StoreError> {
        self.seal().await?;
        let numbers = self.chain.decision(id).await?;
        let wanted = format!("\"id\":\"{id}\"");
        let mut entries = self.entries(&numbers).await?;
        entries.retain(|entry| entry.json.contains(&wanted));
        Ok(entries)
    }

    /// The entries of these ascending numbers.
    async fn entries(&self, numbers: &[u64]) -> Result<Vec<Sealed>, StoreError> {
        let mut found = Vec::with_capacity(numbers.len());
        let mut rest = numbers;
        while let Some(first) = rest.first() {
            let row = rest
                .iter()
                .zip(*first..)
                .take_while(|(number, next)| *number == next)
                .count();
            found.extend(self.chain.read(*first, row as u64).await?);
            rest = &rest[row..];
        }
        Ok(found)
    }
}
