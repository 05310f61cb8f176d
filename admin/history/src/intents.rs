//! The intents of an account and mode: complete, whether they are in the store or in the archive.

mod keyed;
mod listing;
mod position;
mod search;

pub use keyed::GENERATIONS_MAX;
pub use search::READ_MAX;

use archive::Archive;
use archive::intents::{IntentSegment, IntentSegments, IntentsDescriptor};
use domain::intent::IntentState;
use std::sync::Arc;
use store::intent::{IntentRecord, IntentTexts};
use store::keys::{IntentIndex, Realm};
use store::page::{Page, PageRequest};
use store::{Store, StoreError};

/// Attempts at a read while intents are archived.
const READ_ATTEMPTS: usize = 8;

/// A handle on the intents of one account and mode.
#[derive(Debug)]
pub struct Intents<'a> {
    store: &'a Store,
    archive: &'a Archive,
    realm: Realm,
}

impl<'a> Intents<'a> {
    /// Returns the intents of a realm.
    pub const fn new(store: &'a Store, archive: &'a Archive, realm: Realm) -> Self {
        Self {
            store,
            archive,
            realm,
        }
    }

    /// Reads the intent `id`; `None` if there is none. An intent in the store takes precedence over an archived one.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed record; [`StoreError::Archive`] if a required segment is missing or
    /// damaged.
    pub async fn read(&self, id: &str) -> Result<Option<IntentRecord>, StoreError> {
        let live = IntentRecord::read(self.store, &self.realm, id).await?;
        if live.is_some() {
            return Ok(live);
        }
        // An intent that was removed from the store since the read above is found here.
        let segments = self.segments().await?;
        for descriptor in segments.iter().rev().filter(|segment| segment.may_hold(id)) {
            let segment = self.open(descriptor).await?;
            if let Some(found) = segment.records().iter().find(|record| record.id == id) {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    /// Lists the intents on a page, newest first. Those in the archive follow those in the store. An intent that moves
    /// to the archive while its list is read page by page is on the next page, or was on an earlier one.
    pub async fn list(
        &self,
        index: IntentIndex<'_>,
        page: PageRequest<'_>,
    ) -> Result<Page<IntentRecord>, StoreError> {
        self.page((index, IntentTexts::With), page).await
    }

    /// Like [`Intents::list`]; without texts, intents in the store are brief.
    async fn page(
        &self,
        (index, texts): (IntentIndex<'_>, IntentTexts),
        page: PageRequest<'_>,
    ) -> Result<Page<IntentRecord>, StoreError> {
        if index == IntentIndex::State(IntentState::PendingApproval.as_str()) {
            return IntentRecord::waiting(self.store, &self.realm, page, texts).await;
        }
        for _ in 0..READ_ATTEMPTS {
            let segments = self.segments().await?;
            let part = listing::IntentListing::new(self, (index, texts), page.limit, &segments)
                .page(page.start)
                .await;
            // Intents that were archived meanwhile would be missing from the page.
            if self.segments().await?.len() == segments.len() {
                return part;
            }
        }
        Err(StoreError::unexpected(
            "the intents were archived while they were read",
        ))
    }

    async fn open(&self, descriptor: &Arc<IntentsDescriptor>) -> Result<Arc<IntentSegment>, StoreError> {
        self.archive.intent_segment(&self.realm, descriptor).await
    }

    async fn segments(&self) -> Result<IntentSegments, StoreError> {
        self.archive.intent_segments(self.store, &self.realm).await
    }
}
