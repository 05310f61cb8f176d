//! Twin of `claim_segment.lua`, `archive.lua` and `forget.lua`: agree on the next segment of the archive, and remove
//! the entries that it holds.

use crate::account::ModeField;
use crate::keys::Realm;
use crate::script::script;
use crate::{Store, StoreError};
use std::collections::BTreeMap;

script! {
    /// Agrees on the next segment. Runs on a full store, since archiving frees memory.
    pub static CLAIM_SEGMENT = "claim_segment",
    kind: Timeless,
    source: [include_str!("claim_segment.lua")],
    when_full: Run,
    keys: struct ClaimKeys: String { base },
    args: struct ClaimArgs: String { first, last, unusable },
}

script! {
    /// Removes archived entries. Runs on a full store, since it frees memory.
    pub static ARCHIVE = "archive",
    kind: Timeless,
    source: [include_str!("archive.lua")],
    when_full: Run,
    keys: struct ArchiveKeys: String { audit_log, hashes, base, segments, archived_counts, account, lists[..] },
    /// `lists` are name and count of each list.
    args: struct ArchiveArgs: Vec<u8> { first, count, hash, descriptor, text_field, text, lists[..] },
}

script! {
    /// Removes look-ups of archived decisions.
    pub static FORGET = "forget",
    kind: Timeless,
    source: [include_str!("forget.lua")],
    when_full: Run,
    keys: struct ForgetKeys<'a>: &'a str { base, decisions[..] },
    args: struct ForgetArgs: String { done, lengths[..] },
}

/// Maximum number of index lists that one segment may affect. A segment with more is made shorter.
pub const LISTS_MAX: usize = 1000;
/// Look-ups removed by one execution.
pub const FORGET_BATCH: usize = 500;

/// A list of the index: agent and entry type; `None` stands for all.
pub type ListName = (Option<String>, Option<String>);

/// The oldest sealed entries, as written to a segment.
#[derive(Debug)]
pub struct ArchivedEntries<'a> {
    /// Number of the first entry.
    pub first: u64,
    /// Count of entries.
    pub count: u64,
    /// Hash of the last entry.
    pub hash: [u8; 32],
    /// Descriptor of the segment.
    pub descriptor: &'a str,
    /// Sum of [`long_text`](super::long_text) of the lines.
    pub text: u64,
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

impl ArchivedEntries<'_> {
    /// Executes the script.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry.
    pub async fn execute(&self, store: &Store, realm: &Realm) -> Result<RemovalOutcome, StoreError> {
        let (mut lists, mut list_args) = (Vec::new(), Vec::new());
        for ((agent, kind), count) in self.lists {
            let (agent, kind) = (agent.as_deref(), kind.as_deref());
            lists.push(realm.audit_index(agent, kind));
            list_args.push(Realm::audit_count(agent, kind).into());
            list_args.push(count.to_string().into());
        }
        let keys = ArchiveKeys {
            audit_log: realm.audit(),
            hashes: realm.audit_hashes(),
            base: realm.audit_base(),
            segments: realm.audit_segments(),
            archived_counts: realm.audit_archived(),
            account: realm.record(),
            lists,
        };
        let args = ArchiveArgs {
            first: self.first.to_string().into(),
            count: self.count.to_string().into(),
            hash: self.hash.into(),
            descriptor: self.descriptor.into(),
            text_field: ModeField::AuditText.name(realm.mode()).into(),
            text: self.text.to_string().into(),
            lists: list_args,
        };
        let mut reply = store.reply(&ARCHIVE, keys, args).await?;
        let word = reply.word()?;
        match word.as_str() {
            "archived" => Ok(RemovalOutcome::Done),
            "moved" => Ok(RemovalOutcome::Moved),
            _ if reply.word()? == "disagree" => Ok(RemovalOutcome::Disagrees(word)),
            _ => reply.unexpected(),
        }
    }
}

/// Returns the last entry of the segment from entry `first` on: `last`, unless an earlier claim has another. A claim of
/// `unusable` is replaced. `None` if entry `first` is not the oldest one any more.
///
/// # Errors
/// [`StoreError`]; the script may have run. Safe to retry.
pub(crate) async fn claim_segment(
    store: &Store,
    realm: &Realm,
    (first, last): (u64, u64),
    unusable: Option<u64>,
) -> Result<Option<u64>, StoreError> {
    let keys = ClaimKeys {
        base: realm.audit_base(),
    };
    let args = ClaimArgs {
        first: first.to_string(),
        last: last.to_string(),
        unusable: unusable.unwrap_or(0).to_string(),
    };
    let mut reply = store.reply(&CLAIM_SEGMENT, keys, args).await?;
    reply.parsed(|word| match word {
        "moved" => Some(None),
        digits => digits.parse().ok().map(Some),
    })
}

/// Removes packed look-ups of decisions, if their length is unchanged. All entries up to `done` are then without
/// look-ups.
pub(crate) async fn forget(
    store: &Store,
    realm: &Realm,
    texts: &[(String, u64)],
    done: u64,
) -> Result<u64, StoreError> {
    let base = realm.audit_base();
    let keys = ForgetKeys {
        base: &base,
        decisions: texts.iter().map(|(key, _)| key.as_str()).collect(),
    };
    let args = ForgetArgs {
        done: done.to_string(),
        lengths: texts.iter().map(|(_, length)| length.to_string()).collect(),
    };
    store
        .script(&FORGET, &keys.into_values(), &args.into_values())
        .await
}
