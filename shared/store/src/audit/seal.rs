//! Twin of `seal.lua`: stores the hashes of a batch of audit entries, indexes them, and adds them to the statistics of
//! their days.

use crate::audit::decisions;
use crate::audit::statistics::AGENTS_MAX;
use crate::audit::tally::Tally;
use crate::call::reap::KEPT_LIFE;
use crate::keys::AccountKeys;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use domain::entry::Entry;
use domain::mode::Mode;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

/// The script. Runs on a full store, since only sealed entries can be archived.
pub static SEAL: LazyLock<Script> =
    LazyLock::new(|| Script::new("seal", WhenFull::Run, &[include_str!("seal.lua")]));

/// Most entries that one execution seals.
pub const SEAL_BATCH: u64 = 500;

/// How long a kept hold is remembered after its entry: a little longer than it can be corrected.
const KEPT_MEMORY: Duration = Duration::from_secs(KEPT_LIFE.as_secs() + 24 * 3600);

/// Consecutive entries with their hashes.
#[derive(Debug)]
pub struct Batch {
    /// Hash of the entry before the first; `None` for the genesis.
    pub before: Option<[u8; 32]>,
    /// Entries and hashes, 1 to [`SEAL_BATCH`].
    pub entries: Vec<(Entry, [u8; 32])>,
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedBatch {
    /// The hashes are stored.
    Done,
    /// Another sealer was faster; nothing changed. Read the extent anew.
    Moved,
    /// The stored chain does not end with the batch's `before`; nothing changed.
    Disagrees,
}

impl Batch {
    /// Executes the script.
    ///
    /// # Errors
    /// [`StoreError`]; the batch may be sealed. Safe to retry.
    pub async fn execute(
        &self,
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
    ) -> Result<SealedBatch, StoreError> {
        let Some((first, _)) = self.entries.first() else {
            return Ok(SealedBatch::Done);
        };
        let (lists, texts) = self.indexes(account, mode);
        let tally = Tally::from_entries(self.entries.iter().map(|(entry, _)| entry));
        let mut keys = vec![
            account.audit(mode),
            account.audit_hashes(mode),
            account.audit_base(mode),
            account.audit_kept(mode),
        ];
        keys.extend(tally.days().map(|day| account.audit_day(mode, day)));
        keys.extend(lists.keys().chain(texts.keys()).cloned());
        let mut args: Vec<Vec<u8>> = vec![
            first.seq.to_string().into(),
            self.before.map(Vec::from).unwrap_or_default(),
            self.entries.len().to_string().into(),
            lists.len().to_string().into(),
            tally.days().len().to_string().into(),
            AGENTS_MAX.to_string().into(),
            KEPT_MEMORY.as_millis().to_string().into(),
        ];
        args.extend(tally.words().into_iter().map(String::into_bytes));
        args.extend(self.entries.iter().map(|(_, hash)| Vec::from(*hash)));
        for numbers in lists.values() {
            args.push(numbers.len().to_string().into());
            args.extend(numbers.iter().map(|number| number.to_string().into()));
        }
        args.extend(texts.into_values().map(String::into_bytes));
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let reply: Vec<String> = store.script(&SEAL, &keys, &args).await?;
        match reply.first().map(String::as_str) {
            Some("sealed") => Ok(SealedBatch::Done),
            Some("moved") => Ok(SealedBatch::Moved),
            Some("disagree") => Ok(SealedBatch::Disagrees),
            _ => Err(StoreError::UnexpectedReply("seal".to_owned())),
        }
    }

    /// Returns the entry numbers for each index list, and the packed text for each key of decisions.
    fn indexes(
        &self,
        account: &AccountKeys,
        mode: Mode,
    ) -> (BTreeMap<String, Vec<u64>>, BTreeMap<String, String>) {
        let mut lists: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for (entry, _) in &self.entries {
            for (agent, kind) in entry.indexes() {
                let list = account.audit_index(mode, agent, kind);
                lists.entry(list).or_default().push(entry.seq);
            }
            if let Some((start, record)) = decisions::record(entry.decision_id(), entry.seq) {
                let key = account.audit_decisions(mode, start);
                texts.entry(key).or_default().push_str(&record);
            }
        }
        (lists, texts)
    }
}
