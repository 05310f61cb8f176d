//! Reading one page of a listing: a sorted set of ids, and the records behind them.

use super::{Store, StoreError};
use std::collections::HashMap;

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// How many at most.
    pub limit: usize,
    /// How many to skip.
    pub offset: usize,
}

impl Page {
    /// The records (hashes) of the members of a sorted set on this page, highest first, and the size of the set. A record
    /// that is deleted between the two reads is empty.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn records(
        self,
        store: &Store,
        set: &str,
        key: impl Fn(&str) -> String,
    ) -> Result<(Vec<(String, HashMap<String, String>)>, u64), StoreError> {
        let (ids, total) = self.members(store, set).await?;
        Ok((records(store, ids, key).await?, total))
    }

    /// The records (hashes) of the items of a list on this page, last first, and the length of the list.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn records_of_list(
        self,
        store: &Store,
        list: &str,
        key: impl Fn(&str) -> String,
    ) -> Result<(Vec<(String, HashMap<String, String>)>, u64), StoreError> {
        let (ids, total) = self.items(store, list).await?;
        Ok((records(store, ids, key).await?, total))
    }

    /// The items of a list on this page, last first, and the length of the list.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn items(self, store: &Store, list: &str) -> Result<(Vec<String>, u64), StoreError> {
        let end = |skipped: usize| -i64::try_from(skipped).unwrap_or(i64::MAX);
        let mut look = redis::pipe();
        let (first, last) = (end(self.offset.saturating_add(self.limit)), end(self.offset + 1));
        look.cmd("LRANGE").arg(list).arg(first).arg(last);
        look.cmd("LLEN").arg(list);
        let (mut items, total): (Vec<String>, u64) = store.pipeline(&look).await?;
        items.reverse();
        Ok((items, total))
    }

    /// The members of a sorted set on this page, highest first, and the size of the set.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn members(self, store: &Store, set: &str) -> Result<(Vec<String>, u64), StoreError> {
        let last = self.offset.saturating_add(self.limit).saturating_sub(1);
        let mut look = redis::pipe();
        look.cmd("ZREVRANGE").arg(set).arg(self.offset).arg(last);
        look.cmd("ZCARD").arg(set);
        store.pipeline(&look).await
    }
}

/// The records behind ids, in the same order.
pub(super) async fn records(
    store: &Store,
    ids: Vec<String>,
    key: impl Fn(&str) -> String,
) -> Result<Vec<(String, HashMap<String, String>)>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut look = redis::pipe();
    for id in &ids {
        look.cmd("HGETALL").arg(key(id));
    }
    let records: Vec<HashMap<String, String>> = store.pipeline(&look).await?;
    Ok(ids.into_iter().zip(records).collect())
}
