//! Archived intents: their segments, and reading them.

mod moving;
pub(crate) mod segment;

pub use moving::{Age, Moved};
pub use segment::{IntentSegment, IntentSegments, IntentsDescriptor};

use crate::handle::Archive;
use std::sync::Arc;
use store::intent::{IntentRecord, SEGMENTS_AT_ONCE};
use store::keys::Realm;
use store::{Store, StoreError};

impl Archive {
    /// Returns the segments of archived intents, oldest first.
    ///
    /// # Errors
    /// [`StoreError`], also if they are not contiguous.
    pub async fn intent_segments(&self, store: &Store, realm: &Realm) -> Result<IntentSegments, StoreError> {
        let known = self.known_intent_segments(realm);
        let end = IntentRecord::segments(store, realm, skipped(&known)).await?;
        self.joined_intent_segments(store, realm, &known, &end).await
    }

    /// Returns the segments that this process knows, without a read of the store.
    pub fn known_intent_segments(&self, realm: &Realm) -> IntentSegments {
        self.intent_lists.get(realm).unwrap_or_default()
    }

    /// Returns the segments: `known`, and those that follow. `end` are the store's segments after the first [`skipped`]
    /// ones, all or the first [`SEGMENTS_AT_ONCE`]. If none follows, returns `known` itself.
    ///
    /// # Errors
    /// [`StoreError`], also if they are not contiguous.
    pub async fn joined_intent_segments(
        &self,
        store: &Store,
        realm: &Realm,
        known: &IntentSegments,
        end: &[String],
    ) -> Result<IntentSegments, StoreError> {
        let mut fresh = parse(end)?;
        if known.last() == fresh.first() && fresh.len() <= 1 {
            return Ok(Arc::clone(known));
        }
        if end.len() >= SEGMENTS_AT_ONCE {
            let skip = skipped(known) + end.len();
            fresh.append(&mut parse(&IntentRecord::segments(store, realm, skip).await?)?);
        }
        let mut list: Vec<Arc<IntentsDescriptor>> = known.iter().take(skipped(known)).cloned().collect();
        if known.last() != fresh.first() {
            if !known.is_empty() {
                fresh = parse(&IntentRecord::segments(store, realm, 0).await?)?;
            }
            list.clear();
        }
        list.append(&mut fresh);
        let mut last = 0;
        for descriptor in &list {
            if descriptor.first != last + 1 || descriptor.last < descriptor.first {
                let text = format!("the segments of intents of {realm} have gaps");
                return Err(StoreError::unexpected(text));
            }
            last = descriptor.last;
        }
        let list = Arc::new(list);
        self.intent_lists.insert(realm.clone(), Arc::clone(&list));
        Ok(list)
    }

    /// Reads a segment of archived intents.
    ///
    /// # Errors
    /// [`StoreError::Archive`] if it is missing or not the archived one, [`StoreError::ArchiveUnavailable`] if it could
    /// not be read.
    pub async fn intent_segment(
        &self,
        realm: &Realm,
        descriptor: &Arc<IntentsDescriptor>,
    ) -> Result<Arc<IntentSegment>, StoreError> {
        let (path, _) = descriptor.paths(realm);
        let opening = self.open(&path, descriptor, IntentSegment::open);
        self.intent_segments.get_or_insert_async(&path, opening).await
    }
}

/// Number of `known` segments that are not read again. The last one is always read again: after a restore from a backup
/// it may be a different one.
pub fn skipped(known: &IntentSegments) -> usize {
    known.len().saturating_sub(1)
}

fn parse(texts: &[String]) -> Result<Vec<Arc<IntentsDescriptor>>, StoreError> {
    let parsed = texts.iter().map(|text| serde_json::from_str(text).map(Arc::new));
    let parsed: serde_json::Result<_> = parsed.collect();
    parsed.map_err(|error| StoreError::unexpected(format!("a description of archived intents: {error}")))
}
