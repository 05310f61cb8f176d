//! The accounts that are refused what makes records (decision D71): those that take far more of a store that is nearly full than
//! others, and those over their budget of audit entries. A worker of the admin server names them in one key outside the
//! buckets; each edge and admin server reads it once a second, so a call costs nothing more.
//!
//! The list protects the store's room, not money: a full store denies by itself. So a server that cannot read it goes on with
//! what it read last, for [`LIFE`] at most, and then refuses nobody; and a list that no worker renews ends after the same time.

use crate::script::{Script, WhenFull};
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
/// Accounts that a list names, at most: the largest ones.
pub const REFUSED_MAX: usize = 200;

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

/// Refused accounts, each with its cause.
pub type List = BTreeMap<String, Cause>;

/// Names the accounts of `list`, [`REFUSED_MAX`] at most, for [`LIFE`].
///
/// # Errors
/// [`StoreError`]; it may be repeated.
pub async fn write(store: &Store, list: &List) -> Result<(), StoreError> {
    let lines = list.iter().take(REFUSED_MAX);
    let lines: Vec<String> = lines
        .map(|(account, cause)| format!("{account} {}", cause.as_str()))
        .collect();
    let args = [lines.join("\n"), LIFE.as_millis().to_string()];
    let reply: Vec<String> = store.script(&REFUSE, &[keys::REFUSED], &args).await?;
    match reply.first().map(String::as_str) {
        Some("named") => Ok(()),
        _ => Err(StoreError::Nonsense(REFUSE.name().to_owned())),
    }
}

/// The list as the store has it; lines that make no sense are left out.
///
/// # Errors
/// [`StoreError`].
pub async fn read(store: &Store) -> Result<List, StoreError> {
    let text: Option<String> = store.command(redis::cmd("GET").arg(keys::REFUSED)).await?;
    Ok(parse(text.as_deref().unwrap_or_default()))
}

fn parse(text: &str) -> List {
    let lines = text.lines().filter_map(|line| {
        let (account, cause) = line.split_once(' ')?;
        Some((account.to_owned(), Cause::parse(cause)?))
    });
    lines.collect()
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
    /// Why an account is refused; `None` when it is not.
    pub fn cause(&self, account: &str) -> Option<Cause> {
        let copied = self.0.load();
        if copied.list.is_empty() {
            return None;
        }
        copied.list.get(account).copied()
    }

    /// Reads the list. A store that does not answer changes nothing until what is known is older than [`LIFE`].
    pub async fn follow(&self, store: &Store) {
        match read(store).await {
            Ok(list) => {
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
                accounts = list.len(),
                "accounts that are refused what makes records"
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
        let list = parse("acct_1 share\nacct_2 audit_entries\nacct_3 none\n\nacct_4");
        let expected = [("acct_1", Cause::Share), ("acct_2", Cause::AuditEntries)];
        assert_eq!(list, expected.map(|(id, cause)| (id.to_owned(), cause)).into());
    }

    #[test]
    fn a_copy_refuses_whom_the_list_names() {
        let copy = RefusedCopy::default();
        assert_eq!(copy.cause("acct_1"), None);
        copy.take(parse("acct_1 share"));
        assert_eq!(copy.cause("acct_1"), Some(Cause::Share));
        assert_eq!(copy.cause("acct_2"), None);
        copy.take(List::new());
        assert_eq!(copy.cause("acct_1"), None);
    }

    /// What was read before the store went away holds for a while, and not for ever.
    #[tokio::test]
    async fn a_store_that_is_away_ends_the_list_after_its_life() {
        let store = Store::open("redis://127.0.0.1:1", Duration::from_millis(50)).unwrap();
        let copy = RefusedCopy::default();
        copy.take(parse("acct_1 share"));
        copy.follow(&store).await;
        assert_eq!(copy.cause("acct_1"), Some(Cause::Share));
        let old = Copied {
            list: parse("acct_1 share"),
            read_at: Instant::now().checked_sub(LIFE + Duration::from_secs(1)),
        };
        copy.0.store(Arc::new(old));
        copy.follow(&store).await;
        assert_eq!(copy.cause("acct_1"), None);
    }
}
