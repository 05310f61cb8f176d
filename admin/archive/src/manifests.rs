//! Compares manifests with the segments that they describe, and rebuilds them. Reads past all caches, since it looks
//! for damage to the objects.

use crate::handle::{Archive, damaged};
use crate::segment::{Descriptor, Manifest};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use store::StoreError;
use store::keys::Realm;

impl Archive {
    /// Reads a segment's manifest and compares it with the store's description and with the segment's entries. Returns
    /// what is wrong with it, with its name.
    ///
    /// # Errors
    /// [`StoreError::Archive`] when the segment cannot be read.
    pub async fn fault_of_manifest(
        &self,
        realm: &Realm,
        descriptor: &Arc<Descriptor>,
    ) -> Result<Option<String>, StoreError> {
        let (_, path) = descriptor.paths(realm);
        let decisions = self.segment(realm, descriptor).await?.decisions();
        let bytes = match self.read(&path).await {
            Ok(bytes) => bytes,
            Err(StoreError::Archive(why)) => return Ok(Some(why)),
            Err(error) => return Err(error),
        };
        let why = match Manifest::open(descriptor, &bytes) {
            Ok(manifest) if !manifest.describes(descriptor) => {
                "the store's description of the segment is another one".to_owned()
            }
            Ok(manifest) if decisions.as_ref() == Some(&manifest.decisions) => return Ok(None),
            Ok(_) => "its decisions are not those of the segment's entries".to_owned(),
            Err(why) => why,
        };
        Ok(Some(format!("`{path}` of the archive: {why}")))
    }

    /// Makes a segment's manifest again from the segment, and puts it in its place. What is there is kept beside it.
    ///
    /// # Errors
    /// [`StoreError::Archive`], also when the unpacked text differs from the archived one.
    pub async fn remake_manifest(
        &self,
        realm: &Realm,
        descriptor: &Arc<Descriptor>,
    ) -> Result<(), StoreError> {
        let (_, path) = descriptor.paths(realm);
        let decisions = self.segment(realm, descriptor).await?.decisions();
        let manifest = decisions.map(|decisions| Manifest::new(realm, descriptor, decisions));
        let bytes = manifest.and_then(|manifest| serde_json::to_vec(&manifest).ok());
        let bytes = bytes.filter(|bytes| hex::encode(Sha256::digest(bytes)) == descriptor.manifest);
        match bytes {
            Some(bytes) => self.settle(&path, &bytes).await,
            None => Err(damaged(&path, "what its segment holds is not what it described")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::ArchiveLocation;
    use crate::segment::Draft;
    use domain::chain::GENESIS;
    use domain::entry::Entry;
    use domain::mode::Mode;
    use settings::load_from;
    use store::audit::chain::ChainHead;

    #[tokio::test]
    async fn a_manifest_is_held_against_its_segment_and_made_again_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = load_from(None, std::iter::empty()).unwrap().audit;
        settings.archive = dir.path().display().to_string();
        let archive = Archive::at(ArchiveLocation::from_settings(&settings).unwrap());
        let line = br#"1 5 D frozen allow_01KAH3V9J80123456780000000 1 ,,,,,, acct_1 bot - vk_1 p m"#;
        let realm = Realm::new("acct_1", Mode::Live);
        let mut draft = Draft::behind(ChainHead::default(), 10);
        draft
            .add(&Entry::from_line(1, line).seal(GENESIS).unwrap())
            .unwrap();
        let built = draft.build(&realm).unwrap().unwrap();
        let descriptor = Arc::new(built.descriptor);
        let (segment, path) = descriptor.paths(&realm);
        archive.location().put(&segment, built.segment).await.unwrap();

        let fault = async |descriptor| archive.fault_of_manifest(&realm, descriptor).await.unwrap();
        let why = fault(&descriptor).await.unwrap();
        assert!(why.contains(&path) && why.contains("not there"), "{why}");
        archive.remake_manifest(&realm, &descriptor).await.unwrap();
        assert_eq!(fault(&descriptor).await, None);
        assert!(archive.location().get(&path).await.unwrap().unwrap() == built.manifest);

        // The store's description was changed: it would hide entries from lists and sums of a span of time.
        for changed in [
            Descriptor {
                from_ms: 0,
                ..(*descriptor).clone()
            },
            Descriptor {
                to_ms: 0,
                ..(*descriptor).clone()
            },
            Descriptor {
                counts: [("*/*".to_owned(), 9)].into(),
                ..(*descriptor).clone()
            },
        ] {
            let changed = Arc::new(changed);
            let why = archive
                .fault_of_manifest(&realm, &changed)
                .await
                .unwrap()
                .unwrap();
            assert!(why.contains("description of the segment is another one"), "{why}");
        }

        // Changed together with its digest in the store.
        let mut forged: Manifest = serde_json::from_slice(&built.manifest).unwrap();
        assert_eq!(forged.decisions.len(), 27);
        forged.decisions.clear();
        let bytes = serde_json::to_vec(&forged).unwrap();
        let other = Arc::new(Descriptor {
            manifest: hex::encode(Sha256::digest(&bytes)),
            ..(*descriptor).clone()
        });
        archive.location().put(&path, bytes).await.unwrap();
        assert!(
            fault(&other)
                .await
                .unwrap()
                .contains("its decisions are not those")
        );
        let why = archive.remake_manifest(&realm, &other).await.unwrap_err();
        assert!(why.to_string().contains("not what it described"), "{why}");
        assert!(fault(&descriptor).await.is_some(), "its digest");
        archive.remake_manifest(&realm, &descriptor).await.unwrap();
        assert_eq!(fault(&descriptor).await, None);
    }
}
