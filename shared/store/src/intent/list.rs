//! Lists intents in the store. Waiting ones are in a sorted set. The others are in lists of ids. The archiver removes
//! ids from the middle of a list, so a position is the number that the intent got when it was added.

use super::{IntentRecord, IntentTexts};
use crate::keys::{IntentIndex, Realm};
use crate::page::{Page, PageRequest};
use crate::time_span::{self, Times};
use crate::{Store, StoreError};
use domain::intent::IntentState;

/// A page of intents.
#[derive(Debug)]
pub struct IntentPage {
    /// The intents, newest first.
    pub records: Vec<IntentRecord>,
    /// Length of the whole list.
    pub total: u64,
    /// True if the list continues.
    pub goes_on: bool,
}

impl IntentRecord {
    /// Returns its position in a list: the number that it got when it was added.
    pub fn position_in(&self, index: IntentIndex<'_>) -> u64 {
        match index {
            IntentIndex::State(_) => self.filed.unwrap_or(self.seq),
            IntentIndex::All | IntentIndex::Kind(_) | IntentIndex::Agent(_) => self.seq,
        }
    }

    /// Returns when it was added to a list: the time of the request, or of the change to its state, in ms since 1970.
    pub fn listed_ms(&self, index: IntentIndex<'_>) -> u64 {
        match index {
            IntentIndex::State(_) => self.updated_at_ms(),
            IntentIndex::All | IntentIndex::Kind(_) | IntentIndex::Agent(_) => self.at_ms,
        }
    }

    /// Lists the intents that wait for approval, newest first.
    pub async fn waiting(
        store: &Store,
        realm: &Realm,
        page: PageRequest<'_>,
        texts: IntentTexts,
    ) -> Result<Page<Self>, StoreError> {
        let set = realm.intents(IntentIndex::State(IntentState::PendingApproval.as_str()));
        let mut part = page.members(store, &set).await?;
        let ids = std::mem::take(&mut part.records);
        let records = Self::read_all(store, realm, ids, texts).await?;
        Ok(part.with(records))
    }

    /// Lists the newest intents of any other list: `limit` of them after `offset`.
    pub async fn newest(
        store: &Store,
        realm: &Realm,
        listed: (IntentIndex<'_>, IntentTexts),
        (offset, limit): (u64, u64),
    ) -> Result<IntentPage, StoreError> {
        let list = IntentList::new(store, realm, listed);
        let total = list.length().await?;
        list.before(total.saturating_sub(offset), limit, total).await
    }

    /// Lists at most `limit` intents before a position.
    pub async fn older(
        store: &Store,
        realm: &Realm,
        listed: (IntentIndex<'_>, IntentTexts),
        position: u64,
        limit: u64,
    ) -> Result<IntentPage, StoreError> {
        let list = IntentList::new(store, realm, listed);
        let total = list.length().await?;
        let end = time_span::first_at(&list, 0..total, position).await?;
        list.before(end, limit, total).await
    }
}

/// A list of ids, oldest first.
struct IntentList<'a> {
    store: &'a Store,
    realm: &'a Realm,
    index: IntentIndex<'a>,
    texts: IntentTexts,
    key: String,
}

impl<'a> IntentList<'a> {
    fn new(store: &'a Store, realm: &'a Realm, (index, texts): (IntentIndex<'a>, IntentTexts)) -> Self {
        Self {
            store,
            realm,
            index,
            texts,
            key: realm.intents(index),
        }
    }

    async fn length(&self) -> Result<u64, StoreError> {
        self.store.command(redis::cmd("LLEN").arg(&self.key)).await
    }

    /// Returns the `limit` intents before the index `end`, newest first.
    async fn before(&self, end: u64, limit: u64, total: u64) -> Result<IntentPage, StoreError> {
        let start = end.saturating_sub(limit);
        let mut ids = self.ids(start, end).await?;
        ids.reverse();
        Ok(IntentPage {
            records: IntentRecord::read_all(self.store, self.realm, ids, self.texts).await?,
            total,
            goes_on: start > 0,
        })
    }

    async fn ids(&self, start: u64, end: u64) -> Result<Vec<String>, StoreError> {
        if start >= end {
            return Ok(Vec::new());
        }
        let mut range = redis::cmd("LRANGE");
        range.arg(&self.key).arg(start).arg(end - 1);
        self.store.command(&range).await
    }
}

/// A list is searched by its positions, which ascend as times do.
impl Times for IntentList<'_> {
    /// Reads the positions of the intents at these indexes. A missing one was archived, which the caller detects.
    async fn at(&self, indexes: &[u64]) -> Result<Vec<u64>, StoreError> {
        let items = indexes.iter().map(|index| (&self.key, index));
        let ids: Vec<Option<String>> = self.store.each("LINDEX", items).await?;
        let fields = ids.iter().map(|id| {
            let key = self.realm.intent(id.as_deref().unwrap_or_default());
            (key, &["seq", "filed"])
        });
        let found: Vec<(Option<u64>, Option<u64>)> = self.store.each("HMGET", fields).await?;
        let is_state = matches!(self.index, IntentIndex::State(_));
        let position = |(seq, filed): (_, Option<u64>)| filed.filter(|_| is_state).or(seq);
        Ok(found
            .into_iter()
            .map(|found| position(found).unwrap_or(u64::MAX))
            .collect())
    }
}
