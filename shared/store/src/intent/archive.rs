//! Twin of `archive_intents.lua`: removes intents that an archive segment holds.

use crate::intent::IntentRecord;
use crate::keys::{IntentIndex, Realm};
use crate::script::names::{InputNames, inputs};
use crate::script::{Script, ScriptKind, WhenFull};
use crate::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The script. Runs on a full store, since it frees memory.
pub static ARCHIVE_INTENTS: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("archive_intents.lua")];
    let inputs =
        InputNames::new(ArchiveKeys::NAMES, ArchiveArgs::NAMES).with_rows_of(ArchivedIntentArgs::NAMES);
    Script::new(
        "archive_intents",
        ScriptKind::Timeless,
        WhenFull::Run,
        inputs,
        &parts,
    )
});

inputs! {
    /// The keys. `records` are those of the intents, then the lists to which [`ArchivedIntentArgs`] refers by position,
    /// and last the account record.
    struct ArchiveKeys: String { segments, intents, records[..] }
}
inputs! {
    /// The arguments. `intents` is an [`ArchivedIntentArgs`] for each intent, followed by the field that counts their
    /// text.
    struct ArchiveArgs: String { segments, descriptor, count, intents[..] }
}
inputs! {
    /// The arguments of one intent. `lists` are positions among the keys.
    struct ArchivedIntentArgs: String { id, state, head, lists[3] }
}

/// Keys of the script before `records`.
const KEYS_BEFORE_RECORDS: usize = ArchiveKeys::NAMES.len() - 1;

/// Maximum number of intents that one execution removes, since it blocks the server meanwhile.
pub const INTENTS_MAX: usize = 200;

/// Maximum number of list elements that one execution may pass to remove intents; the caller counts them with
/// [`IntentRecord::passed`]. An element's index in a list only decreases, since lists grow at the end.
pub const PASSED_MAX: usize = 400_000;

/// Intents that were written to a segment.
#[derive(Debug)]
pub struct ArchivedIntents<'a> {
    /// Number of segments before this one.
    pub segments: usize,
    /// Descriptor of the segment.
    pub descriptor: &'a str,
    /// The intents, at most [`INTENTS_MAX`], each once.
    pub intents: &'a [IntentRecord],
}

impl ArchivedIntents<'_> {
    /// Removes the intents. Returns false, with nothing changed, if another archiver was faster or an intent changed.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run.
    pub async fn execute(&self, store: &Store, realm: &Realm) -> Result<bool, StoreError> {
        let records = self.intents.iter().map(|intent| realm.intent(&intent.id));
        let mut records: Vec<String> = records.collect();
        let mut intents = Vec::new();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for intent in self.intents {
            let lists = [
                IntentIndex::Kind(intent.kind.as_str()),
                IntentIndex::Agent(&intent.agent),
                IntentIndex::State(intent.state.as_str()),
            ];
            let lists = lists.map(|index| {
                let key = realm.intents(index);
                let number = *numbers.entry(key.clone()).or_insert_with(|| {
                    records.push(key);
                    KEYS_BEFORE_RECORDS + records.len()
                });
                number.to_string()
            });
            let intent = ArchivedIntentArgs {
                id: intent.id.clone(),
                state: intent.state.as_str().to_owned(),
                head: intent.head.clone(),
                lists,
            };
            intents.extend(intent.into_values());
        }
        records.push(realm.record());
        intents.push(format!("{}_text_bytes", realm.mode()));
        let keys = ArchiveKeys {
            segments: realm.intent_segments(),
            intents: realm.intents(IntentIndex::All),
            records,
        };
        let args = ArchiveArgs {
            segments: self.segments.to_string(),
            descriptor: self.descriptor.to_owned(),
            count: self.intents.len().to_string(),
            intents,
        };
        let reply = store.reply(&ARCHIVE_INTENTS, keys, args).await?;
        reply.is("archived", &["changed"])
    }
}
