//! Twin of `archive_intents.lua`: let go of intents that lie in a segment of the archive.

use crate::intent::IntentRecord;
use crate::keys::{AccountKeys, IntentIndex};
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use domain::mode::Mode;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The script. It runs on a full store too, since it makes room.
pub static ARCHIVE_INTENTS: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "archive_intents",
        WhenFull::Run,
        &[include_str!("archive_intents.lua")],
    )
});

/// Intents that leave the store at once, at most: the store does nothing else meanwhile.
pub const INTENTS_MAX: usize = 200;

/// Places of lists that are passed at once to take intents out, at most: the caller counts them with
/// [`IntentRecord::passed`]. A place in a list only falls, since lists grow at their ends alone.
pub const PASSED_MAX: usize = 400_000;

/// Intents that were written to a segment.
#[derive(Debug)]
pub struct ArchivedIntents<'a> {
    /// How many segments there were before it.
    pub segments: usize,
    /// What describes the segment.
    pub descriptor: &'a str,
    /// The intents, [`INTENTS_MAX`] at most, each once.
    pub intents: &'a [IntentRecord],
}

impl ArchivedIntents<'_> {
    /// Lets go of them; `false` when somebody else archived meanwhile, or one of them changed: nothing happened then.
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
