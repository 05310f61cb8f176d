//! What the archiver reads of intents: the oldest ones, and the segments of those that left.

use super::IntentRecord;
use crate::domain::mode::Mode;
use crate::store::keys::{AccountKeys, IntentIndex};
use crate::store::page::records;
use crate::store::{Store, StoreError};
use std::collections::HashMap;

impl IntentRecord {
    /// The fields of intents in the store, oldest first: `count` of them behind the first `skip`, with their ids. One that
    /// leaves meanwhile has none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn oldest(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        (skip, count): (usize, usize),
    ) -> Result<Vec<(String, HashMap<String, String>)>, StoreError> {
        let mut look = redis::cmd("LRANGE");
        look.arg(account.intents(mode, IntentIndex::All));
        look.arg(skip).arg((skip + count).saturating_sub(1));
        let ids = store.command(&look).await?;
        records(store, ids, |id| account.intent(mode, id)).await
    }

    /// What describes the segments of archived intents, without the first `skip` ones.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn segments(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        skip: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut look = redis::cmd("LRANGE");
        look.arg(account.intent_segments(mode)).arg(skip).arg(-1);
        store.command(&look).await
    }
}
