//! Reads records of intents with or without their texts, which can be most of a record: a filter reads the texts of its
//! matches only.

use super::IntentRecord;
use crate::keys::Realm;
use crate::page::records;
use crate::{Store, StoreError};
use std::collections::HashMap;

/// Extent of the intents that are read: with or without their texts, `request` and `note`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentTexts {
    /// The whole record.
    With,
    /// The record is brief: it has an empty request and no note.
    Without,
}

/// The fields of a record that are not its texts.
const BRIEF: [&str; 24] = [
    "id",
    "kind",
    "fp",
    "state",
    "first",
    "reason",
    "amount",
    "currency",
    "actor",
    "agent",
    "at",
    "decision",
    "decided_by",
    "decided_at",
    "policy",
    "txn",
    "balance",
    "day",
    "month",
    "escrow",
    "head",
    "seq",
    "filed",
    "run",
];

impl IntentRecord {
    /// Returns whether it was read without its texts. The request of a whole record is JSON, so it is not empty.
    pub const fn is_brief(&self) -> bool {
        self.request.is_empty()
    }

    /// Reads the records of ids, in the same order.
    pub(super) async fn read_all(
        store: &Store,
        realm: &Realm,
        ids: Vec<String>,
        texts: IntentTexts,
    ) -> Result<Vec<Self>, StoreError> {
        let key = |id: &str| realm.intent(id);
        let found: Vec<HashMap<String, String>> = match texts {
            IntentTexts::With => {
                let found = records(store, ids, key).await?.into_iter();
                found.map(|(_, fields)| fields).collect()
            }
            IntentTexts::Without => {
                let reads = ids.iter().map(|id| (key(id), &BRIEF));
                let found: Vec<Vec<Option<String>>> = store.each("HMGET", reads).await?;
                found.into_iter().map(brief).collect()
            }
        };
        let read: Option<Vec<Self>> = found.iter().map(Self::from_fields).collect();
        read.ok_or_else(|| StoreError::unexpected("intent record"))
    }

    /// Reads the texts of the brief records. One that has left the store stays brief.
    pub async fn add_texts(store: &Store, realm: &Realm, all: &mut [Self]) -> Result<(), StoreError> {
        let needy: Vec<&mut Self> = all.iter_mut().filter(|record| record.is_brief()).collect();
        let ids = needy.iter().map(|record| record.id.clone()).collect();
        let found = records(store, ids, |id| realm.intent(id)).await?;
        for (record, (_, fields)) in needy.into_iter().zip(found) {
            if !fields.is_empty() {
                let whole = Self::from_fields(&fields);
                *record = whole.ok_or_else(|| StoreError::unexpected("intent record"))?;
            }
        }
        Ok(())
    }
}

/// Returns the fields of a record as if its texts were empty.
fn brief(values: Vec<Option<String>>) -> HashMap<String, String> {
    let fields = BRIEF.iter().zip(values);
    let fields = fields.filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
    fields.chain([("request".to_owned(), String::new())]).collect()
}
