//! The archive as shared by requests and workers, with a cache of read objects.

use crate::intents::segment::{IntentSegment, IntentSegments};
use crate::location::{ArchiveLocation, LocationError};
use crate::segment::{Descriptor, Manifest, Segment};
use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use settings::{AuditSettings, BadSettings};
use std::hash::Hash;
use std::sync::Arc;
use store::StoreError;
use store::audit::chain::Chain;
use store::keys::Realm;

/// Memory for opened segments, manifests and lists of segments, of entries and of intents, in bytes each.
const CACHED_BYTES: u64 = 64 << 20;
/// Expected number of entries in a cache.
const CACHED: usize = 200;
/// Attempts at reading the list of segments while others archive.
const READ_ATTEMPTS: usize = 8;

/// The archive, shared by all requests and workers.
#[derive(Debug)]
pub struct Archive {
    pub(crate) location: ArchiveLocation,
    pub(crate) lists: Cache<Realm, Arc<Vec<Arc<Descriptor>>>, Weight>,
    pub(crate) manifests: Cache<String, Arc<Manifest>, Weight>,
    pub(crate) segments: Cache<String, Arc<Segment>, Weight>,
    pub(crate) intent_lists: Cache<Realm, IntentSegments, Weight>,
    pub(crate) intent_segments: Cache<String, Arc<IntentSegment>, Weight>,
}

/// Estimates the memory of cached objects.
#[derive(Debug, Clone)]
pub(crate) struct Weight;

impl Weighter<Realm, Arc<Vec<Arc<Descriptor>>>> for Weight {
    fn weight(&self, _key: &Realm, list: &Arc<Vec<Arc<Descriptor>>>) -> u64 {
        let counts: usize = list.iter().map(|descriptor| descriptor.counts.len()).sum();
        (list.len() * 600 + counts * 80 + 100) as u64
    }
}

impl Weighter<String, Arc<Manifest>> for Weight {
    fn weight(&self, _key: &String, manifest: &Arc<Manifest>) -> u64 {
        (manifest.decisions.len() + manifest.segment.counts.len() * 80 + 1000) as u64
    }
}

impl Weighter<String, Arc<Segment>> for Weight {
    fn weight(&self, _key: &String, segment: &Arc<Segment>) -> u64 {
        segment.weight()
    }
}

impl Weighter<Realm, IntentSegments> for Weight {
    fn weight(&self, _key: &Realm, list: &IntentSegments) -> u64 {
        list.iter().map(|descriptor| descriptor.weight()).sum::<u64>() + 100
    }
}

impl Weighter<String, Arc<IntentSegment>> for Weight {
    fn weight(&self, _key: &String, segment: &Arc<IntentSegment>) -> u64 {
        segment.weight()
    }
}

/// Creates a cache with a single part: parts of a divided cache would have no room for a large segment.
fn cache<K: Eq + Hash + Clone, V: Clone>() -> Cache<K, V, Weight>
where
    Weight: Weighter<K, V>,
{
    let options = OptionsBuilder::new()
        .estimated_items_capacity(CACHED)
        .weight_capacity(CACHED_BYTES)
        .shards(1)
        .build();
    match options {
        Ok(options) => Cache::with_options(
            options,
            Weight,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ),
        // Does not occur, since both capacities are given.
        Err(_) => Cache::with_weighter(CACHED, CACHED_BYTES, Weight),
    }
}

impl Archive {
    /// Opens the configured archive.
    ///
    /// # Errors
    /// [`BadSettings`] with the key.
    pub fn from_settings(settings: &AuditSettings) -> Result<Self, BadSettings> {
        Ok(Self::at(ArchiveLocation::from_settings(settings)?))
    }

    /// Returns the archive at `location`.
    pub fn at(location: ArchiveLocation) -> Self {
        Self {
            location,
            lists: cache(),
            manifests: cache(),
            segments: cache(),
            intent_lists: cache(),
            intent_segments: cache(),
        }
    }

    /// Returns the same archive with empty caches: a proof of its contents must read them from the archive.
    pub fn afresh(&self) -> Self {
        Self::at(self.location.clone())
    }

    /// Returns its location.
    pub const fn location(&self) -> &ArchiveLocation {
        &self.location
    }

    /// Returns the segments of a chain, oldest first.
    ///
    /// # Errors
    /// [`StoreError`], also if they do not cover all entries that were removed from the store.
    pub async fn segments(&self, chain: &Chain<'_>) -> Result<Arc<Vec<Arc<Descriptor>>>, StoreError> {
        let realm = chain.realm();
        let mut known = self.lists.get(realm).unwrap_or_default();
        for _ in 0..READ_ATTEMPTS {
            let (end, fresh) = chain.segments(known.len()).await?;
            let mut list: Vec<Arc<Descriptor>> = known.to_vec();
            for text in &fresh {
                let descriptor: Descriptor = serde_json::from_str(text)
                    .map_err(|error| StoreError::unexpected(format!("a segment's description: {error}")))?;
                list.push(Arc::new(descriptor));
            }
            if fits(&list, end.seq, &end.text()) {
                let list = Arc::new(list);
                self.lists.insert(realm.clone(), Arc::clone(&list));
                return Ok(list);
            }
            if known.is_empty() {
                break;
            }
            // The store differs from before: it was restored from a backup.
            known = Arc::default();
        }
        let text = format!("the segments of {realm} do not cover what left the store");
        Err(StoreError::unexpected(text))
    }

    /// Reads a segment's manifest.
    ///
    /// # Errors
    /// [`StoreError::Archive`] if it is missing or not the archived one, [`StoreError::ArchiveUnavailable`] if it could
    /// not be read.
    pub async fn manifest(
        &self,
        realm: &Realm,
        descriptor: &Descriptor,
    ) -> Result<Arc<Manifest>, StoreError> {
        let (_, path) = descriptor.paths(realm);
        let reading = async {
            let bytes = self.read(&path).await?;
            let manifest = Manifest::open(descriptor, &bytes);
            manifest.map(Arc::new).map_err(|why| damaged(&path, &why))
        };
        let key = format!("{path} {}", descriptor.manifest);
        self.manifests.get_or_insert_async(&key, reading).await
    }

    /// Reads a segment.
    ///
    /// # Errors
    /// [`StoreError::Archive`] if it is missing or not the archived one, [`StoreError::ArchiveUnavailable`] if it could
    /// not be read.
    pub async fn segment(
        &self,
        realm: &Realm,
        descriptor: &Arc<Descriptor>,
    ) -> Result<Arc<Segment>, StoreError> {
        let (path, _) = descriptor.paths(realm);
        let key = format!("{path} {}", descriptor.sha256);
        let opening = self.open(&path, descriptor, Segment::open);
        self.segments.get_or_insert_async(&key, opening).await
    }

    /// Reads the object at `path` and opens it, on a thread on which work may block.
    pub(crate) async fn open<D: Send + Sync + 'static, S: Send + 'static>(
        &self,
        path: &str,
        descriptor: &Arc<D>,
        open: fn(&D, &[u8]) -> Result<S, String>,
    ) -> Result<Arc<S>, StoreError> {
        let bytes = self.read(path).await?;
        let descriptor = Arc::clone(descriptor);
        let opening = tokio::task::spawn_blocking(move || open(&descriptor, &bytes)).await;
        let opened = opening.unwrap_or_else(|error| Err(error.to_string()));
        opened.map(Arc::new).map_err(|why| damaged(path, &why))
    }

    pub(crate) async fn read(&self, path: &str) -> Result<Bytes, StoreError> {
        match self.location.get(path).await {
            Ok(Some(bytes)) => Ok(bytes),
            // A volume that is not mounted, or another directory than the servers'.
            Ok(None) if self.location.is_missing().await => {
                let why = format!("`{path}` of the archive: the archive's directory is not there");
                Err(StoreError::ArchiveUnavailable(why))
            }
            Ok(None) => Err(damaged(path, "it is not there")),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Archive(error.to_string())
}

impl From<LocationError> for StoreError {
    fn from(error: LocationError) -> Self {
        match error.is_damage() {
            true => Self::Archive(error.to_string()),
            false => Self::ArchiveUnavailable(error.to_string()),
        }
    }
}

pub(crate) fn damaged(path: &str, why: &str) -> StoreError {
    failed(format_args!("`{path}` of the archive: {why}"))
}

/// Returns whether the segments are contiguous, from the first entry to the last archived one.
fn fits(list: &[Arc<Descriptor>], end: u64, hash: &str) -> bool {
    let mut next = 1;
    for descriptor in list {
        let length = (descriptor.last + 1).checked_sub(descriptor.first);
        if descriptor.first != next || descriptor.entries == 0 || length != Some(descriptor.entries) {
            return false;
        }
        next = descriptor.last + 1;
    }
    next == end + 1 && list.last().is_none_or(|last| last.hash == hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weighter<u8, u64> for Weight {
        fn weight(&self, _key: &u8, weight: &u64) -> u64 {
            *weight
        }
    }

    #[test]
    fn the_largest_segments_are_kept() {
        let cache = cache::<u8, u64>();
        cache.insert(1, 40 << 20);
        assert!(
            cache.get(&1).is_some(),
            "a segment of 32 MiB of lines, and what it takes besides"
        );
    }
}
