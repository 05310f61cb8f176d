//! A server's copy of the blocked addresses. It remembers the newest version that it read. A store with an older
//! version lost changes (a replica was promoted without them): the ranges that are missing there stay blocked here
//! until the operator blocks them again.

use super::{Version, read, read_version};
use crate::{Store, StoreError};
use arc_swap::ArcSwapOption;
use domain::blocked::AddressSet;
use ipnet::IpNet;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of lost ranges that a log line names.
const NAMED_MAX: usize = 50;

/// Verdict on a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStatus {
    /// Not blocked.
    Free,
    /// The client's address is in a blocked range.
    Blocked,
    /// The client's address is unknown and the list is not empty: refused (decision D73).
    Unknown,
    /// The list was never read: every client is refused.
    Unread,
}

/// A server's copy of the list.
#[derive(Debug, Default)]
pub struct BlockedCopy {
    copied: ArcSwapOption<CopiedRanges>,
    /// Number of the last read that was started.
    begun: AtomicU64,
    /// Serialises updates.
    taking_in: Mutex<()>,
}

#[derive(Debug)]
struct CopiedRanges {
    /// Ranges in force.
    set: AddressSet,
    /// Ranges in the store.
    listed: BTreeSet<IpNet>,
    /// Ranges that the store lost and that have not been blocked again.
    lost: BTreeSet<IpNet>,
    version: Version,
    /// Number of the read that the copy comes from.
    read: u64,
}

impl BlockedCopy {
    /// Returns whether the list was ever read.
    pub fn is_read(&self) -> bool {
        self.copied.load().is_some()
    }

    /// Returns the number of ranges that the store lost and this server keeps blocked.
    pub fn kept(&self) -> usize {
        self.copied
            .load()
            .as_deref()
            .map_or(0, |copied| copied.lost.len())
    }

    /// Returns the verdict on a client. `client` is evaluated only if the list is not empty; `None` stands for an
    /// address that cannot be read, and which may be on the list.
    pub fn judge(&self, client: impl FnOnce() -> Option<IpAddr>) -> BlockStatus {
        match self.copied.load().as_deref() {
            None => BlockStatus::Unread,
            Some(copied) if copied.set.is_empty() => BlockStatus::Free,
            Some(copied) => match client() {
                None => BlockStatus::Unknown,
                Some(client) if copied.set.contains(client) => BlockStatus::Blocked,
                Some(_) => BlockStatus::Free,
            },
        }
    }

    /// Like [`BlockedCopy::judge`]; first reads the list if it was never read.
    pub async fn judge_now(&self, store: &Store, client: impl FnOnce() -> Option<IpAddr>) -> BlockStatus {
        if !self.is_read() {
            self.refresh(store).await;
        }
        self.judge(client)
    }

    /// Refreshes the copy if the version changed. Keeps the copy if the store does not reply.
    pub async fn refresh(&self, store: &Store) {
        match self.read_again(store).await {
            Ok(()) => {}
            Err(StoreError::UnexpectedReply(what)) => {
                tracing::error!(
                    what,
                    "the blocked addresses cannot be parsed; the known ones stay in force"
                );
            }
            // The store's health check logs it once.
            Err(error) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the blocked addresses cannot be read; the known ones stay in force"
            ),
        }
    }

    async fn read_again(&self, store: &Store) -> Result<(), StoreError> {
        let number = self.begun.fetch_add(1, Ordering::AcqRel);
        let version = read_version(store).await?;
        let known = self.copied.load();
        if known.as_ref().is_some_and(|copied| copied.version == version) {
            return Ok(());
        }
        let (list, version) = read(store).await?;
        let listed = list.into_iter().map(|blocked| blocked.range).collect();
        self.take_in(number, listed, version);
        Ok(())
    }

    /// Updates the copy, unless a later read already did.
    fn take_in(&self, read: u64, listed: BTreeSet<IpNet>, version: Version) {
        let _turn = self.taking_in.lock();
        let known = self.copied.load_full();
        let known = known.as_deref();
        if known.is_some_and(|known| known.read > read) {
            return;
        }
        let mut lost = known.map(|known| known.lost.clone()).unwrap_or_default();
        let fell_from = known.filter(|known| version.fell_from(&known.version));
        lost.extend(fell_from.iter().flat_map(|known| &known.listed));
        lost.retain(|range| !listed.contains(range));
        if fell_from.is_some() {
            log_lost_ranges(&lost);
        }
        let is_over = lost.is_empty() && known.is_some_and(|known| !known.lost.is_empty());
        if is_over {
            tracing::info!("the store has all blocked addresses again that it had lost");
        }
        tracing::info!(
            ranges = listed.len(),
            kept = lost.len(),
            "blocked addresses in force"
        );
        let set = AddressSet::new(listed.iter().chain(&lost).copied());
        self.copied.store(Some(Arc::new(CopiedRanges {
            set,
            listed,
            lost,
            version,
            read,
        })));
    }
}

/// Logs the ranges that the store lost, and the command that blocks them again.
fn log_lost_ranges(lost: &BTreeSet<IpNet>) {
    let named = lost.iter().take(NAMED_MAX).map(ToString::to_string);
    tracing::error!(
        ranges = lost.len(),
        lost = named.collect::<Vec<_>>().join(" "),
        "the store lost changes of the blocked addresses; what this server knew stays blocked until it ends: compare \
         `tollgate-admin ip list`, block again what is lost (and then unblock what shall be free)"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(steps: &[(&str, &[&str])]) -> BlockedCopy {
        let copy = BlockedCopy::default();
        for (version, ranges) in steps {
            read(&copy, version, ranges);
        }
        copy
    }

    /// Applies a read of the store with this version and these ranges.
    fn read(copy: &BlockedCopy, version: &str, ranges: &[&str]) {
        let number = copy.begun.fetch_add(1, Ordering::AcqRel);
        let listed = ranges.iter().map(|range| range.parse().unwrap()).collect();
        copy.take_in(number, listed, Version::from_stored(Some(version.to_owned())));
    }

    fn judge(copy: &BlockedCopy, text: &str) -> BlockStatus {
        copy.judge(|| text.parse().ok())
    }

    /// Returns which of the addresses `198.51.100.1` to `.4` are blocked.
    fn blocked(copy: &BlockedCopy) -> Vec<u8> {
        let is_blocked = |last: &u8| judge(copy, &format!("198.51.100.{last}")) == BlockStatus::Blocked;
        (1..=4).filter(is_blocked).collect()
    }

    const ONE: &str = "198.51.100.1/32";
    const TWO: &str = "198.51.100.2/32";
    const THREE: &str = "198.51.100.3/32";

    #[test]
    fn no_address_is_admitted_before_the_list_is_read_and_an_empty_list_needs_no_address() {
        let copy = BlockedCopy::default();
        let unasked = || -> Option<IpAddr> { panic!("the address is not needed") };
        assert_eq!(copy.judge(unasked), BlockStatus::Unread);
        read(&copy, "1-a", &[]);
        assert_eq!(copy.judge(unasked), BlockStatus::Free);
        read(&copy, "2-a", &["203.0.113.0/24"]);
        assert_eq!(judge(&copy, "203.0.113.9"), BlockStatus::Blocked);
        assert_eq!(judge(&copy, "203.0.114.9"), BlockStatus::Free);
        assert_eq!(
            judge(&copy, "unknown"),
            BlockStatus::Unknown,
            "it could be on the list"
        );
    }

    #[test]
    fn ranges_that_the_store_lost_stay_blocked_until_blocked_again() {
        let copy = copy(&[("1-a", &[ONE]), ("2-b", &[ONE, TWO]), ("1-a", &[ONE])]);
        assert_eq!(blocked(&copy), [1, 2], "lost");
        // Other changes continue, even past the lost version.
        read(&copy, "2-x", &[ONE, THREE]);
        assert_eq!(blocked(&copy), [1, 2, 3]);
        read(&copy, "3-x", &[THREE]);
        read(&copy, "4-x", &[]);
        assert_eq!(blocked(&copy), [2], "what was unblocked since is free");
        read(&copy, "5-x", &[TWO]);
        read(&copy, "6-x", &[]);
        assert_eq!(blocked(&copy), [0_u8; 0], "blocked again, and then let in");
    }

    #[test]
    fn a_store_that_counts_the_same_with_another_list_lost_changes_too() {
        let copy = copy(&[("2-b", &[ONE, TWO]), ("2-x", &[ONE])]);
        assert_eq!(blocked(&copy), [1, 2]);
        read(&copy, "1-a", &[THREE]);
        assert_eq!(blocked(&copy), [1, 2, 3], "twice");
    }

    #[test]
    fn a_list_that_is_gone_stays() {
        let copy = copy(&[("2-b", &[ONE, TWO])]);
        copy.take_in(9, BTreeSet::new(), Version::from_stored(None));
        assert_eq!(blocked(&copy), [1, 2]);
    }

    #[test]
    fn a_lost_unblock_blocks_again_and_nothing_waits_for_the_operator() {
        let copy = copy(&[("1-a", &[ONE]), ("2-b", &[]), ("1-a", &[ONE])]);
        assert_eq!(blocked(&copy), [1]);
        read(&copy, "2-x", &[]);
        assert_eq!(blocked(&copy), [0_u8; 0]);
    }

    #[test]
    fn a_read_that_was_overtaken_changes_nothing() {
        let copy = copy(&[("1-a", &[ONE]), ("2-b", &[])]);
        copy.take_in(
            0,
            BTreeSet::from([ONE.parse().unwrap()]),
            Version::from_stored(Some("1-a".to_owned())),
        );
        assert_eq!(blocked(&copy), [0_u8; 0]);
    }
}
