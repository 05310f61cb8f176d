//! Checks that each segment of the archive has the manifest that was archived with it. Decisions are found by the
//! manifest; the trail is valid without it.

use crate::broken::Broken;
use archive::Archive;
use archive::segment::Descriptor;
use std::sync::Arc;
use store::StoreError;
use store::audit::chain::Chain;
use store::keys::Realm;

/// The manifests of a trail's segments, each checked after its segment was read.
pub(super) struct Manifests<'a> {
    archive: &'a Archive,
    realm: &'a Realm,
    segments: Arc<Vec<Arc<Descriptor>>>,
    next: usize,
    /// The first fault.
    pub(super) broken: Option<Broken>,
}

impl<'a> Manifests<'a> {
    /// Reads the list of segments. A malformed list counts as empty: the verifier reports it.
    pub(super) async fn read(
        archive: &'a Archive,
        chain: &Chain<'_>,
        realm: &'a Realm,
    ) -> Result<Self, StoreError> {
        let segments = match archive.segments(chain).await {
            Err(StoreError::UnexpectedReply(_)) => Arc::default(),
            found => found?,
        };
        Ok(Self {
            archive,
            realm,
            segments,
            next: 0,
            broken: None,
        })
    }

    /// Checks the manifests of the segments up to entry `end`, which the verifier has read.
    pub(super) async fn up_to(&mut self, end: u64) -> Result<(), StoreError> {
        while let Some(segment) = self.segments.get(self.next).filter(|next| next.last <= end) {
            self.next += 1;
            let found = self.archive.fault_of_manifest(self.realm, segment).await;
            let why = match found {
                Ok(None) => continue,
                Ok(Some(why)) | Err(StoreError::Archive(why)) => why,
                Err(error) => return Err(error),
            };
            let (first, last) = (segment.first, segment.last);
            let problem = format!(
                "the manifest of its segment cannot be used: {why}. Entries {first} to {last} are in order, but their \
                 decisions cannot be found by id; `audit manifests` rebuilds it."
            );
            self.broken.get_or_insert(Broken::at(first, problem));
        }
        Ok(())
    }
}
