//! Archived intents: the segments that hold them, and how those are read again.

mod moving;
pub(crate) mod segment;

pub use moving::{Age, Moved};
pub use segment::{IntentSegment, IntentSegments, IntentsDescriptor};

use crate::handle::{Archive, damaged};
use domain::mode::Mode;
use std::sync::Arc;
use store::intent::IntentRecord;
use store::keys::AccountKeys;
use store::{Store, StoreError};

impl Archive {
    /// The segments of archived intents, oldest first.
    ///
    /// # Errors
    /// [`StoreError`], also when they do not follow each other.
    pub async fn intent_segments(
        &self,
        store: &Store,
        account: &str,
        mode: Mode,
    ) -> Result<IntentSegments, StoreError> {
        let keys = AccountKeys::new(account);
        let key = (account.to_owned(), mode);
        let known = self.intent_lists.get(&key).unwrap_or_default();
        // The last one that is known is read again: in a store that was restored from a backup it is another one.
        let skip = known.len().saturating_sub(1);
        let mut fresh = parse(&IntentRecord::segments(store, &keys, mode, skip).await?)?;
        let mut list: Vec<Arc<IntentsDescriptor>> = known.iter().take(skip).cloned().collect();
        if known.last() != fresh.first() {
            if !known.is_empty() {
                fresh = parse(&IntentRecord::segments(store, &keys, mode, 0).await?)?;
            }
            list.clear();
        }
        list.append(&mut fresh);
        let mut last = 0;
        for descriptor in &list {
            if descriptor.first != last + 1 || descriptor.last < descriptor.first {
                let text = format!("the segments of intents of {account} {mode} have gaps");
                return Err(StoreError::unexpected(text));
            }
            last = descriptor.last;
        }
        let list = Arc::new(list);
        self.intent_lists.insert(key, Arc::clone(&list));
        Ok(list)
    }

    /// A segment of archived intents.
    ///
    /// # Errors
    /// [`StoreError::Archive`] when it cannot be read, or is not the one that was archived.
    pub async fn intent_segment(
        &self,
        account: &str,
        mode: Mode,
        descriptor: &Arc<IntentsDescriptor>,
    ) -> Result<Arc<IntentSegment>, StoreError> {
        let (path, _) = descriptor.paths(account, mode);
        let reading = async {
            let bytes = self.read(&path).await?;
            let descriptor = Arc::clone(descriptor);
            let opening = tokio::task::spawn_blocking(move || IntentSegment::open(&descriptor, &bytes)).await;
            let opened = opening.unwrap_or_else(|error| Err(error.to_string()));
            opened.map(Arc::new).map_err(|why| damaged(&path, &why))
        };
        self.intent_segments.get_or_insert_async(&path, reading).await
    }
}

fn parse(texts: &[String]) -> Result<Vec<Arc<IntentsDescriptor>>, StoreError> {
    let parsed = texts.iter().map(|text| serde_json::from_str(text).map(Arc::new));
    let parsed: serde_json::Result<_> = parsed.collect();
    parsed.map_err(|error| StoreError::unexpected(format!("a description of archived intents: {error}")))
}
