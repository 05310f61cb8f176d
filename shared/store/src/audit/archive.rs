//! Twin of `archive.lua` and `forget.lua`: remove entries that an archive segment holds.

use crate::keys::AccountKeys;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use domain::mode::Mode;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Removes archived entries. Runs on a full store, since it frees memory.
pub static ARCHIVE: LazyLock<Script> =
    LazyLock::new(|| Script::new("archive", WhenFull::Run, &[include_str!("archive.lua")]));
/// Removes look-ups of archived decisions.
pub static FORGET: LazyLock<Script> =
    LazyLock::new(|| Script::new("forget", WhenFull::Run, &[include_str!("forget.lua")]));

/// Most index lists that one segment may touch. A segment with more is made shorter.
pub const LISTS_MAX: usize = 1000;
/// Look-ups removed by one execution.
pub const FORGET_BATCH: usize = 500;

/// A list of the index: agent and entry type; `None` stands for every.
pub type ListName = (Option<String>, Option<String>);

/// The oldest sealed entries, as written to a segment.
#[derive(Debug)]
pub struct Archived<'a> {
    /// Number of the first entry.
    pub first: u64,
    /// Count of entries.
    pub count: u64,
    /// Hash of the last entry.
    pub hash: [u8; 32],
    /// Descriptor of the segment.
    pub descriptor: &'a str,
    /// Count of entries in each index list.
    pub lists: &'a BTreeMap<ListName, u64>,
}

/// Outcome of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// The entries are removed.
    Done,
    /// Another archiver was faster; nothing changed.
    Moved,
    /// The store's data under this key differs from the segment; nothing changed.
    Disagrees(String),
}

impl Archived<'_> {
    /// Executes the script.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry.
    pub async fn execute(
        &self,
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
    ) -> Result<RemovalOutcome, StoreError> {
        let mut keys = vec![
            account.audit(mode),
            account.audit_hashes(mode),
            account.audit_base(mode),
            account.audit_segments(mode),
            account.audit_archived(mode),
        ];
        let mut args: Vec<Vec<u8>> = vec![
            self.first.to_string().into(),
            self.count.to_string().into(),
            self.hash.into(),
            self.descriptor.into(),
        ];
        for ((agent, kind), count) in self.lists {
            let (agent, kind) = (agent.as_deref(), kind.as_deref());
            keys.push(account.audit_index(mode, agent, kind));
            args.push(AccountKeys::audit_count(agent, kind).into());
            args.push(count.to_string().into());
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let reply: Vec<String> = store.script(&ARCHIVE, &keys, &args).await?;
        let words: Vec<&str> = reply.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["archived"] => Ok(RemovalOutcome::Done),
            ["moved"] => Ok(RemovalOutcome::Moved),
            [key, "disagree"] => Ok(RemovalOutcome::Disagrees((*key).to_owned())),
            _ => Err(StoreError::UnexpectedReply("archive".to_owned())),
        }
    }
}

/// Removes packed look-ups of decisions, if their length is unchanged. All entries up to `done` are then without
/// look-ups.
pub(crate) async fn forget(
    store: &Store,
    (account, mode): (&AccountKeys, Mode),
    texts: &[(String, u64)],
    done: u64,
) -> Result<u64, StoreError> {
    let base = account.audit_base(mode);
    let mut keys = vec![base.as_str()];
    keys.extend(texts.iter().map(|(key, _)| key.as_str()));
    let mut args = vec![done.to_string()];
    args.extend(texts.iter().map(|(_, length)| length.to_string()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    store.script(&FORGET, &keys, &args).await
}
