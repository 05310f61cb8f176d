//! The blocked addresses as the store keeps them, and a server's copy of them, which it asks at every request.

pub mod script;

use crate::{Store, StoreError, keys};
use arc_swap::ArcSwapOption;
use domain::blocked::AddressSet;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks at the list.
pub const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// The field that tells whether the list changed.
const VERSION: &str = "version";

/// A range that is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The range, in its canonical form.
    pub range: IpNet,
    /// Since when.
    pub since_ms: u64,
    /// Why, if that was said.
    pub reason: Option<String>,
}

/// The whole list, IPv4 first, by address.
///
/// # Errors
/// [`StoreError`], also for an entry that makes no sense.
pub async fn list(store: &Store) -> Result<Vec<Blocked>, StoreError> {
    read(store).await.map(|(list, _)| list)
}

/// The list and its version.
async fn read(store: &Store) -> Result<(Vec<Blocked>, Option<String>), StoreError> {
    let mut fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(keys::BLOCKED)).await?;
    let version = fields.remove(VERSION);
    let entry = |(range, entry): (String, String)| {
        let (since, reason) = entry.split_once(' ')?;
        Some(Blocked {
            range: range.parse().ok()?,
            since_ms: since.parse().ok()?,
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        })
    };
    let list: Option<Vec<Blocked>> = fields.into_iter().map(entry).collect();
    let mut list = list.ok_or_else(|| StoreError::Nonsense("blocked addresses".to_owned()))?;
    list.sort_by_key(|blocked| blocked.range);
    Ok((list, version))
}

/// What the copy says of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may come in.
    Free,
    /// It is on the list.
    Blocked,
    /// Its address is not known, and the list is not empty (decision D73).
    Unknown,
    /// The list was never read: nobody may come in.
    Unread,
}

/// A server's copy of the list.
#[derive(Debug, Default)]
pub struct BlockedCopy(ArcSwapOption<Copied>);

#[derive(Debug)]
struct Copied {
    set: AddressSet,
    version: Option<String>,
}

impl BlockedCopy {
    /// Whether the list was read.
    pub fn is_read(&self) -> bool {
        self.0.load().is_some()
    }

    /// Returns the verdict on a client. `client` is evaluated only while the list is not empty; `None` stands for an
    /// address that cannot be read, which could be any of those on the list.
    pub fn judge(&self, client: impl FnOnce() -> Option<IpAddr>) -> Verdict {
        match self.0.load().as_deref() {
            None => Verdict::Unread,
            Some(copied) if copied.set.is_empty() => Verdict::Free,
            Some(copied) => match client() {
                None => Verdict::Unknown,
                Some(client) if copied.set.contains(client) => Verdict::Blocked,
                Some(_) => Verdict::Free,
            },
        }
    }

    /// Like [`BlockedCopy::judge`], but reads the list when it was not read yet.
    pub async fn judge_now(&self, store: &Store, client: impl FnOnce() -> Option<IpAddr>) -> Verdict {
        if !self.is_read() {
            self.follow(store).await;
        }
        self.judge(client)
    }

    /// Takes in what the store has, unless it is what is known. A store that does not answer changes nothing.
    pub async fn follow(&self, store: &Store) {
        match self.refresh(store).await {
            Ok(()) => {}
            Err(StoreError::Nonsense(what)) => {
                tracing::error!(what, "the blocked addresses make no sense; those known stay");
            }
            // The watch on the store says that it is away, once.
            Err(error) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the blocked addresses cannot be read; those known stay"
            ),
        }
    }

    async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        let version: Option<String> = store
            .command(redis::cmd("HGET").arg(keys::BLOCKED).arg(VERSION))
            .await?;
        if self
            .0
            .load()
            .as_ref()
            .is_some_and(|copied| copied.version == version)
        {
            return Ok(());
        }
        let (list, version) = read(store).await?;
        tracing::info!(ranges = list.len(), "blocked addresses in force");
        let set = AddressSet::of(list.into_iter().map(|blocked| blocked.range));
        self.0.store(Some(Arc::new(Copied { set, version })));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_comes_in_before_the_list_was_read_and_an_empty_one_asks_for_no_address() {
        let copy = BlockedCopy::default();
        let unasked = || -> Option<IpAddr> { panic!("the address is not needed") };
        assert_eq!(copy.judge(unasked), Verdict::Unread);
        let known = |ranges: &[&str]| {
            let set = AddressSet::of(ranges.iter().map(|range| range.parse().unwrap()));
            copy.0.store(Some(Arc::new(Copied { set, version: None })));
        };
        known(&[]);
        assert_eq!(copy.judge(unasked), Verdict::Free);
        known(&["203.0.113.0/24"]);
        let judge = |text: &str| copy.judge(|| text.parse().ok());
        assert_eq!(judge("203.0.113.9"), Verdict::Blocked);
        assert_eq!(judge("203.0.114.9"), Verdict::Free);
        assert_eq!(judge("unknown"), Verdict::Unknown, "it could be on the list");
    }
}
