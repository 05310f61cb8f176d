//! Twin of `archive_intents.lua`: removes intents that an archive segment holds.

use crate::intent::IntentRecord;
use crate::keys::{AccountKeys, IntentIndex};
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use domain::mode::Mode;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The script. Runs on a full store, since it frees memory.
pub static ARCHIVE_INTENTS: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "archive_intents",
        WhenFull::Run,
        &[include_str!("archive_intents.lua")],
    )
});

/// Most intents that one execution removes; it blocks the server meanwhile.
pub const INTENTS_MAX: usize = 200;

/// Most list elements that one execution may pass to remove intents: the caller counts them with
/// [`IntentRecord::passed`]. An index in a list only decreases, since lists grow at the end.
pub const PASSED_MAX: usize = 400_000;

/// Intents that were written to a segment.
#[derive(Debug)]
pub struct ArchivedIntents<'a> {
    /// Count of segments before this one.
    pub segments: usize,
    /// Descriptor of the segment.
    pub descriptor: &'a str,
    /// The intents, [`INTENTS_MAX`] at most, each once.
    pub intents: &'a [IntentRecord],
}

impl ArchivedIntents<'_> {
    /// Removes the intents. Returns false, with nothing changed, if another archiver was faster or an intent changed.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run.
    pub async fn execute(
        &self,
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
    ) -> Result<bool, StoreError> {
        let mut keys = vec![
            account.intent_segments(mode),
            account.intents(mode, IntentIndex::All),
        ];
        keys.extend(self.intents.iter().map(|intent| account.intent(mode, &intent.id)));
        let mut args = vec![
            self.segments.to_string(),
            self.descriptor.to_owned(),
            self.intents.len().to_string(),
        ];
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for intent in self.intents {
            let (id, state) = (intent.id.clone(), intent.state.as_str().to_owned());
            args.extend([id, state, intent.head.clone()]);
            for index in [
                IntentIndex::Kind(intent.kind.as_str()),
                IntentIndex::Agent(&intent.agent),
                IntentIndex::State(intent.state.as_str()),
            ] {
                let key = account.intents(mode, index);
                let number = *numbers.entry(key.clone()).or_insert_with(|| {
                    keys.push(key);
                    keys.len()
                });
                args.push(number.to_string());
            }
        }
        keys.push(account.record());
        args.push(format!("{mode}_text_bytes"));
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let reply: String = store.script(&ARCHIVE_INTENTS, &keys, &args).await?;
        match reply.as_str() {
            "archived" => Ok(true),
            "changed" => Ok(false),
            _ => Err(StoreError::UnexpectedReply("archive_intents".to_owned())),
        }
    }
}
