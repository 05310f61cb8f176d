//! Whether each segment of the archive has the manifest that was archived with it, by which decisions are found: a
//! trail is in order without it, and no decision in the segment is explained any more.

use crate::broken::Broken;
use archive::Archive;
use archive::segment::Descriptor;
use std::sync::Arc;
use store::StoreError;
use store::audit::chain::Chain;
use store::keys::Realm;

/// The manifests of a trail's segments, compared one by one as a walk comes by.
pub(super) struct Manifests<'a> {
    archive: &'a Archive,
    realm: &'a Realm,
    segments: Arc<Vec<Arc<Descriptor>>>,
    next: usize,
    /// What is wrong first.
    pub(super) broken: Option<Broken>,
}

impl<'a> Manifests<'a> {
    /// Those of the segments that are there now; none where the store's list of segments makes no sense, which the walk
    /// finds.
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

    /// Compares those of the segments that end before entry `end` or with it. The walk read these segments.
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
                "the manifest of its segment cannot be used: {why}. Entries {first} to {last} are in order, and no \
                 decision among them is found by its id; `audit manifests` makes it again."
            );
            self.broken.get_or_insert(Broken::at(first, problem));
        }
        Ok(())
    }
}
