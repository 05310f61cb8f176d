//! The accounts that are refused: what makes records (decision D71), to those that take far more of a store that is
//! nearly full than others, and those over their budget of audit entries; and all of it, to those that lost
//! acknowledged writes (decision D47, [`lost`](crate::versions::lost)). A worker of the admin server names them in one key
//! outside the buckets; each edge and admin server reads it once a second, so a call costs nothing more.
//!
//! Room: it is the store's that the list protects, not money: a full store denies by itself. So a server that cannot
//! read it goes on with what it read last, for [`LIFE`] at most, and then refuses nobody; and a list that no worker
//! renews ends after the same time. Lost writes: a server that has read of them once waits for `store accept`, whatever
//! the list says later.

use crate::script::{Script, WhenFull};
use crate::versions::AccountVersion;
use crate::{Store, StoreError, keys};
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Pause between two looks at the list.
pub const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// How long a list holds without being renewed.
pub const LIFE: Duration = Duration::from_secs(60);
/// Accounts that a list refuses what makes records, at most: the largest ones.
pub const REFUSED_MAX: usize = 200;
/// Accounts that a list names since they lost writes, at most. Of more the worker names others in the next list.
pub const LOST_MAX: usize = 1000;
/// What stands behind an account that lost writes, before its generation.
const LOST: &str = "lost_writes";

/// Writes the list. It runs on a full store, which is when it is needed.
pub static REFUSE: LazyLock<Script> =
    LazyLock::new(|| Script::new("refuse", WhenFull::Run, &[include_str!("refuse.lua")]));

/// Why an account is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The store is nearly full, and the account takes far more of it than others.
    Share,
    /// It has as many audit entries that are not archived as its budget allows.
    AuditEntries,
}

impl Cause {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::AuditEntries => "audit_entries",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Share, Self::AuditEntries]
            .into_iter()
            .find(|cause| cause.as_str() == word)
    }

    /// The sentence for people.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Share => {
                "The store of this installation is nearly full, and your account takes far more of it than others. Nothing new is kept for it until there is room; reading, releasing, revoking, freezing and deleting go on. Wait 60 seconds."
            }
            Self::AuditEntries => {
                "Your account has used up its budget of audit entries that are not archived yet. Nothing new is kept for it until some are archived; reading, releasing, revoking, freezing and deleting go on. Wait 60 seconds."
            }
        }
    }
}

/// Refused accounts, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// Those that are refused what makes records.
    pub room: BTreeMap<String, Cause>,
    /// Those that lost writes, each with the generation that `store accept` raises.
    pub lost: BTreeMap<String, u64>,
}

impl List {
    /// Whether it names nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.room.is_empty() && self.lost.is_empty()
    }

    /// One line for each account, [`REFUSED_MAX`] and [`LOST_MAX`] at most.
    fn lines(&self) -> String {
        let room = self.room.iter().take(REFUSED_MAX);
        let room = room.map(|(account, cause)| format!("{account} {}", cause.as_str()));
        let lost = self.lost.iter().take(LOST_MAX);
        let lost = lost.map(|(account, generation)| format!("{account} {LOST} {generation}"));
        room.chain(lost).collect::<Vec<_>>().join("\n")
    }

    /// Lines that make no sense are left out.
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

/// Names the accounts of `list`, [`REFUSED_MAX`] and [`LOST_MAX`] at most, for [`LIFE`].
///
/// # Errors
/// [`StoreError`]; it may be repeated.
pub async fn write(store: &Store, list: &List) -> Result<(), StoreError> {
    let args = [list.lines(), LIFE.as_millis().to_string()];
    let reply: Vec<String> = store.script(&REFUSE, &[keys::REFUSED], &args).await?;
    match reply.first().map(String::as_str) {
        Some("named") => Ok(()),
        _ => Err(StoreError::UnexpectedReply(REFUSE.name().to_owned())),
    }
}

/// The list as the store has it; lines that make no sense are left out.
///
/// # Errors
/// [`StoreError`].
pub async fn read(store: &Store) -> Result<List, StoreError> {
    let text: Option<String> = store.command(redis::cmd("GET").arg(keys::REFUSED)).await?;
    Ok(List::parse(text.as_deref().unwrap_or_default()))
}

/// A server's copy of the list.
#[derive(Debug, Default)]
pub struct RefusedCopy(ArcSwap<Copied>);

#[derive(Debug, Default)]
struct Copied {
    list: List,
    read_at: Option<Instant>,
}

impl RefusedCopy {
    /// Why an account is refused what makes records; `None` when it is not.
    pub fn cause(&self, account: &str) -> Option<Cause> {
        let copied = self.0.load();
        if copied.list.room.is_empty() {
            return None;
        }
        copied.list.room.get(account).copied()
    }

    /// The accounts that lost writes, each with the generation that `store accept` raises.
    #[must_use]
    pub fn lost(&self) -> Vec<(String, u64)> {
        let copied = self.0.load();
        let lost = copied.list.lost.iter();
        lost.map(|(account, generation)| (account.clone(), *generation))
            .collect()
    }

    /// Reads the list, and makes `store` refuse changes of accounts that lost writes. A store that does not answer
    /// changes nothing until what is known is older than [`LIFE`].
    pub async fn follow(&self, store: &Store) {
        match read(store).await {
            Ok(list) => {
                for (account, generation) in &list.lost {
                    store
                        .versions()
                        .record(account, AccountVersion::until_accepted(*generation));
                }
                if !list.is_empty() || !self.0.load().list.is_empty() {
                    self.take(list);
                }
            }
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the refused accounts cannot be read"
                );
                if self.0.load().read_at.is_some_and(|at| at.elapsed() > LIFE) {
                    self.0.store(Arc::default());
                }
            }
        }
    }

    fn take(&self, list: List) {
        if self.0.load().list != list {
            tracing::warn!(
                accounts = list.room.len(),
                lost_writes = list.lost.len(),
                "accounts that are refused"
            );
        }
        let read_at = Some(Instant::now());
        self.0.store(Arc::new(Copied { list, read_at }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_line_by_line() {
        let text = "acct_1 share\nacct_2 audit_entries\nacct_3 none\n\nacct_4\nacct_5 lost_writes 7\n\
            acct_6 lost_writes x";
        let list = List::parse(text);
        let room = [("acct_1", Cause::Share), ("acct_2", Cause::AuditEntries)];
        assert_eq!(list.room, room.map(|(id, cause)| (id.to_owned(), cause)).into());
        assert_eq!(list.lost, [("acct_5".to_owned(), 7)].into());
        assert_eq!(List::parse(&list.lines()), list);
    }

    #[test]
    fn a_list_is_bounded() {
        let id = |n: usize| format!("acct_{n:05}");
        let list = List {
            room: (0..=REFUSED_MAX).map(|n| (id(n), Cause::Share)).collect(),
            lost: (0..=LOST_MAX).map(|n| (id(n), 1)).collect(),
        };
        let read = List::parse(&list.lines());
        assert_eq!((read.room.len(), read.lost.len()), (REFUSED_MAX, LOST_MAX));
    }

    #[test]
    fn a_copy_refuses_whom_the_list_names() {
        let copy = RefusedCopy::default();
        assert_eq!(copy.cause("acct_1"), None);
        copy.take(List::parse("acct_1 share"));
        assert_eq!(copy.cause("acct_1"), Some(Cause::Share));
        assert_eq!(copy.cause("acct_2"), None);
        copy.take(List::parse("acct_2 lost_writes 3"));
        assert_eq!(
            (copy.cause("acct_2"), copy.lost()),
            (None, vec![("acct_2".to_owned(), 3)])
        );
        copy.take(List::default());
        assert_eq!(copy.cause("acct_1"), None);
    }

    /// What was read before the store went away holds for a while, and not for ever.
    #[tokio::test]
    async fn a_store_that_is_away_ends_the_list_after_its_life() {
        let store = Store::open("redis://127.0.0.1:1", Duration::from_millis(50)).unwrap();
        let copy = RefusedCopy::default();
        copy.take(List::parse("acct_1 share"));
        copy.follow(&store).await;
        assert_eq!(copy.cause("acct_1"), Some(Cause::Share));
        let old = Copied {
            list: List::parse("acct_1 share"),
            read_at: Instant::now().checked_sub(LIFE + Duration::from_secs(1)),
        };
        copy.0.store(Arc::new(old));
        copy.follow(&store).await;
        assert_eq!(copy.cause("acct_1"), None);
    }
}
