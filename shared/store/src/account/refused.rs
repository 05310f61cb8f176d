//! Accounts that every server refuses. Two lists under one key outside the buckets: accounts that may not create
//! records, because they use far more of a nearly full store than others or exceed a budget of their audit entries
//! (decision D71); and accounts that lost acknowledged writes, which may do nothing (decision D47,
//! [`lost`](crate::versions::lost)). A worker of the admin server writes the key; each edge and admin server reads it
//! once a second, so a call pays nothing for it.
//!
//! The first list protects the store's memory, not money: a full store itself refuses writes. So a server that cannot
//! read the list keeps the last one for [`LIFE`] and then refuses nobody, and a list that no worker renews expires
//! after the same time. The second list is permanent: once a server has read that an account lost writes, it refuses
//! that account until `store accept`, whatever later lists contain.

mod copy;

pub use copy::RefusedCopy;

use crate::script::script;
use crate::{Store, StoreError, keys};
use std::collections::BTreeMap;
use std::time::Duration;

/// Pause between two reads of the list.
pub const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// Lifetime of a list that is not renewed.
pub const LIFE: Duration = Duration::from_secs(60);
/// Maximum number of accounts in the first list: those that use the most memory.
pub const REFUSED_MAX: usize = 200;
/// Maximum number of accounts in the second list. The worker includes further ones in the next list.
pub const LOST_MAX: usize = 1000;
/// The word before the generation of an account that lost writes.
const LOST: &str = "lost_writes";

script! {
    /// Writes the list. Runs on a full store, which is when the list is needed.
    pub static REFUSE = "refuse",
    kind: Timeless,
    source: [include_str!("refuse.lua")],
    when_full: Run,
    keys: struct RefuseKeys<'a>: &'a str { refused },
    /// `life` is in ms.
    args: struct RefuseArgs<'a>: &'a str { list, life },
}

domain::words! {
    /// Why an account may not create records.
    pub enum Cause {
        /// The store is nearly full, and the account uses a much larger share of it than others.
        Share = "share",
        /// The account's audit entries in the store have reached its budget.
        AuditEntries = "audit_entries",
        /// The text of the account's audit entries in the store has reached its budget.
        AuditText = "audit_text",
    }
}

impl Cause {
    /// Returns the sentence for the caller.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Share => {
                "The store of this installation is nearly full, and your account uses far more of it than others. New records are refused until there is room; reading, releasing, revoking, freezing and deleting still work. Wait 60 seconds."
            }
            Self::AuditEntries => {
                "Your account has used up its budget of audit entries that are not archived yet. New records are refused until some are archived; reading, releasing, revoking, freezing and deleting still work. Wait 60 seconds."
            }
            Self::AuditText => {
                "Your account has used up its budget of text in audit entries that are not archived yet. New records are refused until some are archived; reading, releasing, revoking, freezing and deleting still work. Wait 60 seconds."
            }
        }
    }
}

/// The two lists, by account id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedLists {
    /// Accounts that may not create records.
    pub room: BTreeMap<String, Cause>,
    /// Accounts that lost writes, with the generation that `store accept` increments.
    pub lost: BTreeMap<String, u64>,
}

impl RefusedLists {
    /// Returns whether both lists are empty.
    pub fn is_empty(&self) -> bool {
        self.room.is_empty() && self.lost.is_empty()
    }

    /// Returns one line for each account, [`REFUSED_MAX`] and [`LOST_MAX`] at most.
    fn lines(&self) -> String {
        let room = self.room.iter().take(REFUSED_MAX);
        let room = room.map(|(account, cause)| format!("{account} {}", cause.as_str()));
        let lost = self.lost.iter().take(LOST_MAX);
        let lost = lost.map(|(account, generation)| format!("{account} {LOST} {generation}"));
        room.chain(lost).collect::<Vec<_>>().join("\n")
    }

    /// Skips malformed lines.
    fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for (account, what) in text.lines().filter_map(|line| line.split_once(' ')) {
            let account = account.to_owned();
            if let Some((LOST, generation)) = what.split_once(' ') {
                list.lost
                    .extend(generation.parse().ok().map(|generation| (account, generation)));
            } else {
                list.room.extend(Cause::parse(what).map(|cause| (account, cause)));
            }
        }
        list
    }
}

/// Writes `list`, cut to [`REFUSED_MAX`] and [`LOST_MAX`] accounts. It expires after [`LIFE`].
///
/// Safe to retry.
pub async fn write(store: &Store, list: &RefusedLists) -> Result<(), StoreError> {
    let keys = RefuseKeys {
        refused: keys::REFUSED,
    };
    let args = RefuseArgs {
        list: &list.lines(),
        life: &LIFE.as_millis().to_string(),
    };
    let reply = store.reply(&REFUSE, keys, args).await?;
    reply.expect_one_of(&["named"])
}

/// Reads the list; skips malformed lines.
pub async fn read(store: &Store) -> Result<RefusedLists, StoreError> {
    let text: Option<String> = store.command(redis::cmd("GET").arg(keys::REFUSED)).await?;
    Ok(RefusedLists::parse(text.as_deref().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_line_by_line() {
        let text = "acct_1 share\nacct_2 audit_entries\nacct_3 none\n\nacct_4\nacct_5 lost_writes 7\n\
            acct_6 lost_writes x";
        let list = RefusedLists::parse(text);
        let room = [("acct_1", Cause::Share), ("acct_2", Cause::AuditEntries)];
        assert_eq!(list.room, room.map(|(id, cause)| (id.to_owned(), cause)).into());
        assert_eq!(list.lost, [("acct_5".to_owned(), 7)].into());
        assert_eq!(RefusedLists::parse(&list.lines()), list);
    }

    #[test]
    fn a_list_is_bounded() {
        let id = |n: usize| format!("acct_{n:05}");
        let list = RefusedLists {
            room: (0..=REFUSED_MAX).map(|n| (id(n), Cause::Share)).collect(),
            lost: (0..=LOST_MAX).map(|n| (id(n), 1)).collect(),
        };
        let read = RefusedLists::parse(&list.lines());
        assert_eq!((read.room.len(), read.lost.len()), (REFUSED_MAX, LOST_MAX));
    }
}
