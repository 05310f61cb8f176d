//! The id for an idempotency key: one that no archived intent has, whatever happened to earlier requests with the key.

use super::{Intents, READ_ATTEMPTS};
use archive::intents::{IntentsDescriptor, skipped};
use std::sync::Arc;
use store::StoreError;
use store::intent::{IntentRecord, RequestLookup};

/// Maximum number of consecutive ids of one idempotency key: with the default settings an id is archived after 90 days
/// at the earliest, so a key is used up after about 25 years.
pub const GENERATIONS_MAX: usize = 100;

impl Intents<'_> {
    /// Returns the id for a key, and its record. The id is the first of `id_of(0)`, `id_of(1)`, … that has a record in
    /// the store, or that no archived intent can have. `None` if [`GENERATIONS_MAX`] are used up.
    ///
    /// The test for archived intents uses the segments' descriptors, which are in the store. They may have false
    /// positives, in which case the id is permanently skipped.
    ///
    /// # Errors
    /// [`StoreError`], never [`StoreError::Archive`].
    pub async fn find_by_key(
        &self,
        id_of: impl Fn(usize) -> String,
    ) -> Result<Option<(String, RequestLookup)>, StoreError> {
        let realm = &self.realm;
        let mut segments = self.archive.known_intent_segments(realm);
        for _ in 0..READ_ATTEMPTS {
            let (ids, has_free) = candidates(&segments, &id_of);
            let requested = (ids.as_slice(), skipped(&segments));
            let (found, end) = IntentRecord::find_all(self.store, realm, requested).await?;
            let mut stored = ids.iter().zip(found);
            if let Some((id, found)) = stored.find(|(_, found)| *found != RequestLookup::Nothing) {
                return Ok(Some((id.clone(), found)));
            }
            let joined = self
                .archive
                .joined_intent_segments(self.store, realm, &segments, &end)
                .await?;
            if Arc::ptr_eq(&joined, &segments) {
                let free = ids.into_iter().last().filter(|_| has_free);
                return Ok(free.map(|id| (id, RequestLookup::Nothing)));
            }
            // There are segments that this process did not know.
            segments = joined;
        }
        Err(StoreError::unexpected(
            "intents kept being archived while a key was looked up",
        ))
    }
}

/// Returns the ids of a key up to the first one that no archived intent can have, and whether there is such an id.
fn candidates(segments: &[Arc<IntentsDescriptor>], id_of: impl Fn(usize) -> String) -> (Vec<String>, bool) {
    let mut ids = Vec::new();
    for generation in 0..GENERATIONS_MAX {
        let id = id_of(generation);
        let is_free = !segments.iter().any(|segment| segment.may_hold(&id));
        ids.push(id);
        if is_free {
            return (ids, true);
        }
    }
    (ids, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn segment(ids: &[usize]) -> Arc<IntentsDescriptor> {
        let mut tails: Vec<String> = ids.iter().map(|n| id(*n).split_off(20)).collect();
        tails.sort_unstable();
        Arc::new(IntentsDescriptor {
            first: 1,
            last: ids.len() as u64,
            sha256: String::new(),
            bytes: 0,
            content_bytes: 0,
            counts: BTreeMap::new(),
            ids: tails.concat(),
        })
    }

    fn id(generation: usize) -> String {
        format!("int_{generation:026}")
    }

    fn chosen(segments: &[Arc<IntentsDescriptor>]) -> (usize, bool) {
        let (ids, has_free) = candidates(segments, id);
        assert_eq!(ids, (0..ids.len()).map(id).collect::<Vec<_>>());
        (ids.len() - 1, has_free)
    }

    #[test]
    fn an_id_that_a_segment_may_hold_is_passed_over() {
        assert_eq!(chosen(&[]), (0, true));
        assert_eq!(chosen(&[segment(&[1, 2, 3])]), (0, true));
        assert_eq!(chosen(&[segment(&[0, 7])]), (1, true));
        assert_eq!(chosen(&[segment(&[1, 3]), segment(&[0, 2])]), (4, true));
        // Judged only by the end of the id: the segment has another intent.
        let (ids, _) = candidates(&[segment(&[5])], |n| format!("int_7{:025}", n + 5));
        assert_eq!(ids.len(), 2);
    }

    #[test]
    fn generations_end() {
        let all: Vec<usize> = (0..GENERATIONS_MAX).collect();
        assert_eq!(chosen(&[segment(&all[1..])]), (0, true));
        assert_eq!(
            chosen(&[segment(&all[..GENERATIONS_MAX - 1])]),
            (GENERATIONS_MAX - 1, true)
        );
        assert_eq!(chosen(&[segment(&all)]), (GENERATIONS_MAX - 1, false));
    }
}
