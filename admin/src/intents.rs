//! The intents of an account and mode as readers see them: complete, whether they are in the store or in the archive.

use crate::archive::Archive;
use shared::domain::mode::Mode;
use shared::store::intent::IntentRecord;
use shared::store::keys::{AccountKeys, IntentIndex};
use shared::store::page::Page;
use shared::store::{Store, StoreError};

/// Times that a look is repeated when intents are archived meanwhile.
const ATTEMPTS: usize = 8;

/// A handle on the intents of one account and mode.
#[derive(Debug)]
pub struct Intents<'a> {
    store: &'a Store,
    archive: &'a Archive,
    account: &'a str,
    mode: Mode,
}

impl<'a> Intents<'a> {
    /// The intents of `account` in `mode`.
    #[must_use]
    pub const fn of(store: &'a Store, archive: &'a Archive, account: &'a str, mode: Mode) -> Self {
        Self {
            store,
            archive,
            account,
            mode,
        }
    }

    /// The intent `id`, or `None` when there is none. Of several that had the same idempotency key one after the other it
    /// is the newest.
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense; [`StoreError::Archive`] when a segment that is needed is
    /// missing or damaged.
    pub async fn read(&self, id: &str) -> Result<Option<IntentRecord>, StoreError> {
        let keys = AccountKeys::of(self.account);
        let live = IntentRecord::read(self.store, &keys, self.mode, id).await?;
        if live.is_some() {
            return Ok(live);
        }
        // What left the store between the two looks is found by this one.
        let (account, mode) = (self.account, self.mode);
        let segments = self.archive.intent_segments(self.store, account, mode).await?;
        for descriptor in segments.iter().rev().filter(|segment| segment.may_hold(id)) {
            let segment = self.archive.intent_segment(account, mode, descriptor).await?;
            if let Some(found) = segment.records().iter().find(|record| record.id == id) {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    /// The intents of a list on a page, newest first, and how many there are in all. Those in the archive come behind those
    /// in the store.
    ///
    /// # Errors
    /// As for [`Intents::read`].
    pub async fn list(
        &self,
        index: IntentIndex<'_>,
        page: Page,
    ) -> Result<(Vec<IntentRecord>, u64), StoreError> {
        let keys = AccountKeys::of(self.account);
        for _ in 0..ATTEMPTS {
            let before = self.segments().await?.len();
            let live = IntentRecord::list(self.store, &keys, self.mode, index, page).await;
            let segments = self.segments().await?;
            if segments.len() != before {
                continue; // some were archived while we looked
            }
            let (mut records, live) = live?;
            let archived: u64 = segments.iter().map(|segment| segment.count(index)).sum();
            let mut skip = (page.offset as u64).saturating_sub(live);
            for descriptor in segments.iter().rev() {
                if records.len() >= page.limit {
                    break;
                }
                let count = descriptor.count(index);
                if skip >= count {
                    skip -= count;
                    continue;
                }
                let segment = self
                    .archive
                    .intent_segment(self.account, self.mode, descriptor)
                    .await?;
                let missing = page.limit - records.len();
                let skipped = usize::try_from(skip).unwrap_or(usize::MAX);
                let found = segment.newest(index).into_iter().skip(skipped).take(missing);
                records.extend(found.cloned());
                skip = 0;
            }
            return Ok((records, live + archived));
        }
        Err(StoreError::Nonsense(
            "the intents were archived while they were read".to_owned(),
        ))
    }

    async fn segments(&self) -> Result<crate::archive::intents::IntentSegments, StoreError> {
        self.archive
            .intent_segments(self.store, self.account, self.mode)
            .await
    }
}
