//! Reads for the archiver: the oldest intents, and the segments of archived ones.

use super::IntentRecord;
use crate::keys::{IntentIndex, Realm};
use crate::page::records;
use crate::{Store, StoreError};
use std::collections::HashMap;

/// Segment descriptors read in one round trip.
pub const SEGMENTS_AT_ONCE: usize = 200;

impl IntentRecord {
    /// Reads fields and ids of `count` intents after the oldest `skip`. An intent that is removed meanwhile has no
    /// fields.
    pub async fn oldest(
        store: &Store,
        realm: &Realm,
        (skip, count): (usize, usize),
    ) -> Result<Vec<(String, HashMap<String, String>)>, StoreError> {
        let mut query = redis::cmd("LRANGE");
        query.arg(realm.intents(IntentIndex::All));
        query.arg(skip).arg((skip + count).saturating_sub(1));
        let ids = store.command(&query).await?;
        records(store, ids, |id| realm.intent(id)).await
    }

    /// Counts the elements before it in its four lists, within `most`.
    pub async fn passed(
        &self,
        store: &Store,
        realm: &Realm,
        most: usize,
    ) -> Result<Option<usize>, StoreError> {
        let mut query = redis::pipe();
        for index in [
            IntentIndex::All,
            IntentIndex::Kind(self.kind.as_str()),
            IntentIndex::Agent(&self.agent),
            IntentIndex::State(self.state.as_str()),
        ] {
            let list = realm.intents(index);
            query
                .cmd("LPOS")
                .arg(list)
                .arg(&self.id)
                .arg("MAXLEN")
                .arg(most + 1);
        }
        let places: Vec<Option<usize>> = store.pipeline(&query).await?;
        let sum: Option<usize> = places.into_iter().sum();
        Ok(sum.filter(|sum| *sum <= most))
    }

    /// Reads the descriptors of archived intents' segments, without the first `skip`.
    pub async fn segments(store: &Store, realm: &Realm, skip: usize) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        loop {
            let first = skip + found.len();
            let mut query = redis::cmd("LRANGE");
            query.arg(realm.intent_segments());
            query.arg(first).arg(first + SEGMENTS_AT_ONCE - 1);
            let piece: Vec<String> = store.command(&query).await?;
            let is_last = piece.len() < SEGMENTS_AT_ONCE;
            found.extend(piece);
            if is_last {
                return Ok(found);
            }
        }
    }
}
