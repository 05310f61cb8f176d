//! Twin of `archive.lua` and `forget.lua`: let go of what lies in a segment of the archive.

use crate::keys::AccountKeys;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use domain::mode::Mode;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The script. It runs on a full store too, since it makes room.
pub static ARCHIVE: LazyLock<Script> =
    LazyLock::new(|| Script::new("archive", WhenFull::Run, &[include_str!("archive.lua")]));
/// The other script.
pub static FORGET: LazyLock<Script> =
    LazyLock::new(|| Script::new("forget", WhenFull::Run, &[include_str!("forget.lua")]));

/// Lists of the index that one segment has to do with at most. A segment with more is made shorter.
pub const LISTS_MAX: usize = 1000;
/// Look-ups let go of by one run of the script.
pub const FORGET_BATCH: usize = 500;

/// Whose entries, and of what type: a list of the index. Not both are every.
pub type ListName = (Option<String>, Option<String>);

/// The oldest sealed entries, which were written to a segment.
#[derive(Debug)]
pub struct Archived<'a> {
    /// The number of the first one.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// The hash of the last one.
    pub hash: [u8; 32],
    /// The segment.
    pub descriptor: &'a str,
    /// How many are in each list of the index.
    pub lists: &'a BTreeMap<ListName, u64>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// The entries are no longer in the store.
    Done,
    /// Somebody else archived meanwhile; nothing happened.
    Moved,
    /// The store does not have the same under this key; nothing happened.
    Disagrees(String),
}

impl Archived<'_> {
    /// Tells the store.
    ///
    /// # Errors
    /// [`StoreError`]; it may have happened, and can be tried again.
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

/// Lets go of texts of decisions, if they are still as long as they were; all entries up to `done` need none any more.
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
