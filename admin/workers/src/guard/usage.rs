//! The guard of the store's memory (decision D71): the share of each account in a nearly full store, and in each budget
//! of records.

use crate::metrics::RoomMetrics;
use crate::rotation::Rotation;
use domain::budget::{Budget, Budgets};
use domain::mode::Mode;
use futures::{StreamExt, stream};
use std::collections::{BTreeMap, HashMap};
use store::account::refused::{Cause, REFUSED_MAX};
use store::account::usage::RealmUsage;
use store::connection::batch::Batch;
use store::keys::{AccountKeys, Realm};
use store::{Store, StoreError, server_info};
use telemetry::error_chain;

/// Number of accounts read in one round.
const ACCOUNTS: usize = 1000;
/// Maximum number of accounts read concurrently.
const AT_ONCE: usize = 16;
/// An account is far above the others if it uses this many times the median …
const TIMES_MEDIAN: u64 = 10;
/// … and at least this fraction of the memory that the store may use.
const LEAST_PART: u64 = 100;

/// Store usage of all accounts, as last read.
#[derive(Debug, Default)]
pub(super) struct StoreUsage {
    rotation: Rotation,
    accounts: HashMap<String, AccountShares>,
    /// Accounts whose usage was read or could not be read, until every account had a turn.
    turns: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct AccountShares {
    /// Approximate size in the store.
    bytes: u64,
    /// The budget of audit entries, or of their text, that a mode has used up.
    over_audit: Option<Cause>,
    /// Used share of each budget, in the mode with the larger share.
    shares: [f64; Budget::ALL.len()],
}

impl StoreUsage {
    /// Reads the usage of the next accounts. One whose usage cannot be read keeps the last one. Returns the accounts to
    /// refuse.
    pub(super) async fn read_next(
        &mut self,
        store: &Store,
        guard_share: f64,
    ) -> Result<BTreeMap<String, Cause>, StoreError> {
        self.rotation.renew(store).await?;
        let accounts = self.rotation.next(ACCOUNTS);
        self.turns = self.turns.saturating_add(accounts.len());
        let batch = Batch::new(store);
        let reads = stream::iter(accounts).map(async |account| {
            let bucket = AccountKeys::new(&account).bucket();
            let usage = batch.run(bucket, AccountShares::read(store, &account)).await?;
            Some((account, usage))
        });
        let mut reads = reads.buffer_unordered(AT_ONCE);
        while let Some(read) = reads.next().await {
            self.accounts.extend(read);
        }
        drop(reads);
        if let Err(error) = batch.end() {
            tracing::warn!(error = %error_chain(&error), "the use of the store by some accounts cannot be read");
        }
        let info = server_info::read(store).await?;
        let is_nearly_full = info.memory_fullest >= guard_share && info.memory_max > 0;
        Ok(refused(&self.accounts, is_nearly_full, info.memory_max))
    }

    /// Returns whether every account had a turn. Until then accounts that another server found to be refused are not
    /// known here.
    pub(super) fn is_complete(&self) -> bool {
        self.turns >= self.rotation.len()
    }

    /// Sets the gauges of the highest used shares.
    pub(super) fn set_metrics(&self, metrics: &RoomMetrics) {
        for budget in Budget::ALL {
            let shares = self.accounts.values().map(|usage| usage.shares[budget as usize]);
            metrics.fullest(budget, shares.fold(0.0, f64::max));
        }
    }
}

impl AccountShares {
    async fn read(store: &Store, account: &str) -> Result<Self, StoreError> {
        let budgets = store.budgets();
        let mut sum = Self::default();
        for realm in Mode::ALL.map(|mode| Realm::new(account, mode)) {
            sum.add(&RealmUsage::read(store, &realm).await?, &budgets);
        }
        Ok(sum)
    }

    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    fn add(&mut self, usage: &RealmUsage, budgets: &Budgets) {
        self.bytes = self.bytes.saturating_add(usage.bytes());
        let audit = [
            (Budget::AuditEntries, Cause::AuditEntries),
            (Budget::AuditText, Cause::AuditText),
        ];
        let mut audit = audit.into_iter();
        let over = audit.find(|(budget, _)| usage.count(*budget) >= budgets.limit(*budget));
        self.over_audit = self.over_audit.or(over.map(|(_, cause)| cause));
        for (share, budget) in self.shares.iter_mut().zip(Budget::ALL) {
            let used = usage.count(budget) as f64 / budgets.limit(budget).max(1) as f64;
            *share = share.max(used);
        }
    }
}

/// Returns the accounts to refuse: those over a budget of their audit entries, and in a nearly full store also those
/// that use far more than the median account. If the list cannot hold all of them, it has the largest.
fn refused(
    accounts: &HashMap<String, AccountShares>,
    is_nearly_full: bool,
    memory_max: u64,
) -> BTreeMap<String, Cause> {
    let mut sizes: Vec<u64> = accounts.values().map(|usage| usage.bytes).collect();
    sizes.sort_unstable();
    // The lower of two middle values: with only one other account, an account can still be far above it.
    let median = sizes.get(sizes.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    let far_above = median.saturating_mul(TIMES_MEDIAN).max(memory_max / LEAST_PART);
    let cause = |usage: &AccountShares| {
        let share = (is_nearly_full && usage.bytes > far_above).then_some(Cause::Share);
        usage.over_audit.or(share)
    };
    let found = accounts
        .iter()
        .filter_map(|(id, usage)| Some((id, usage.bytes, cause(usage)?)));
    let mut found: Vec<_> = found.collect();
    found.sort_unstable_by(|(a, more, _), (b, less, _)| less.cmp(more).then(a.cmp(b)));
    let largest = found.into_iter().take(REFUSED_MAX);
    largest.map(|(id, _, cause)| (id.clone(), cause)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(sizes: &[(&str, u64)]) -> HashMap<String, AccountShares> {
        let seen = |bytes| AccountShares {
            bytes,
            ..AccountShares::default()
        };
        sizes
            .iter()
            .map(|(id, bytes)| ((*id).to_owned(), seen(*bytes)))
            .collect()
    }

    #[test]
    fn the_list_of_another_server_counts_until_every_account_had_a_turn() {
        let mut usage = StoreUsage::default();
        usage.rotation.merge(vec!["a".to_owned(), "b".to_owned()]);
        assert!(!usage.is_complete());
        usage.turns = 1;
        assert!(!usage.is_complete());
        usage.turns = 2;
        assert!(usage.is_complete());
    }

    fn names(list: &BTreeMap<String, Cause>) -> Vec<&str> {
        list.keys().map(String::as_str).collect()
    }

    #[test]
    fn an_account_far_above_the_median_is_refused_in_a_nearly_full_store() {
        let all = accounts(&[("a", 50), ("b", 60), ("filler", 601), ("c", 40)]);
        assert!(refused(&all, false, 1000).is_empty());
        assert_eq!(names(&refused(&all, true, 1000)), ["filler"]);
        // Not at ten times the median (50), nor below a hundredth of the memory.
        let all = accounts(&[("a", 50), ("b", 60), ("filler", 500), ("c", 40)]);
        assert!(refused(&all, true, 1000).is_empty());
        assert!(refused(&all, true, 50_100).is_empty());
        assert_eq!(
            names(&refused(&accounts(&[("a", 1), ("filler", 502)]), true, 50_100)),
            ["filler"]
        );
        // A single account is never far above others, and if all are alike the store is simply too small.
        assert!(refused(&accounts(&[("only", 900)]), true, 1000).is_empty());
        assert!(refused(&accounts(&[("a", 300), ("b", 310), ("c", 290)]), true, 1000).is_empty());
        assert!(refused(&HashMap::new(), true, 1000).is_empty());
    }

    #[test]
    fn an_account_over_a_budget_of_its_audit_entries_is_refused_at_once() {
        for cause in [Cause::AuditEntries, Cause::AuditText] {
            let mut all = accounts(&[("a", 50), ("b", 60)]);
            all.insert(
                "c".to_owned(),
                AccountShares {
                    over_audit: Some(cause),
                    ..AccountShares::default()
                },
            );
            let list = refused(&all, false, 0);
            assert_eq!(list, [("c".to_owned(), cause)].into());
        }
    }

    #[test]
    fn the_list_is_bounded() {
        let sizes: Vec<(String, u64)> = (0..REFUSED_MAX as u64 * 3)
            .map(|n| (format!("a{n:04}"), if n % 2 == 0 { 1 } else { 1000 + n }))
            .collect();
        let sizes: Vec<(&str, u64)> = sizes.iter().map(|(id, size)| (id.as_str(), *size)).collect();
        let list = refused(&accounts(&sizes), true, 1000);
        assert_eq!(list.len(), REFUSED_MAX);
        assert!(list.contains_key("a0599") && !list.contains_key("a0001"));
    }
}
