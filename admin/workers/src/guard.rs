//! The guard of the store's memory (decision D71) and of acknowledged writes (decision D47): reads each account's usage
//! of the store and whether it lost writes, and writes the list of refused accounts. Every server does this
//! independently; several servers write the same list.

mod lost;

use self::lost::Lost;
use super::rotation::Rotation;
use crate::base::Base;
use crate::base::pause;
use crate::metrics::Worker;
use domain::budget::{Budget, Budgets};
use domain::mode::Mode;
use futures::{StreamExt, stream};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use store::account::refused::{self, Cause, List, REFRESH_EVERY, REFUSED_MAX, RefusedCopy};
use store::account::usage::Usage;
use store::keys::Realm;
use store::{Store, StoreError, server_info};
use telemetry::error_chain;
use telemetry::registrar::level;
use tokio::sync::watch;

/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(2);
/// Number of accounts read in one round.
const ACCOUNTS: usize = 1000;
/// Maximum number of accounts read concurrently.
const AT_ONCE: usize = 16;
/// An account is far above the others if it uses this many times the median …
const TIMES_MEDIAN: u64 = 10;
/// … and at least this fraction of the memory that the store may use.
const LEAST_PART: u64 = 100;

/// The guard, with its components.
pub(super) struct Guard {
    pub(super) base: Arc<Base>,
    pub(super) guard_share: f64,
}

/// State from one round to the next.
#[derive(Debug, Default)]
struct Memory {
    rotation: Rotation,
    accounts: HashMap<String, AccountUsage>,
    lost: Lost,
    /// The next list of refused accounts.
    list: List,
    /// Whether the list that was written last has entries.
    has_written_entries: bool,
}

/// Store usage of one account.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct AccountUsage {
    /// Approximate bytes in the store.
    bytes: u64,
    /// Whether a mode has as many audit entries as its budget allows.
    over_audit: bool,
    /// Used share of each budget, in the mode with the larger share.
    shares: [f64; Budget::ALL.len()],
}

/// Refreshes the server's copy of the list every [`REFRESH_EVERY`] until the server stops.
pub(super) async fn follow(store: Store, refused: Arc<RefusedCopy>, mut stopping: watch::Receiver<bool>) {
    loop {
        refused.refresh(&store).await;
        if !pause(&mut stopping, REFRESH_EVERY).await {
            return;
        }
    }
}

/// Runs the guard until the server stops.
pub(super) async fn run(worker: Guard, mut stopping: watch::Receiver<bool>) {
    let mut memory = Memory::default();
    loop {
        if worker.base.health.is_sound(&worker.base.store) {
            match round(&worker, &mut memory).await {
                Ok(()) => worker.base.metrics.round(Worker::Guard),
                Err(error) => tracing::debug!(error = %error_chain(&error), "the guard's round was cut off"),
            }
        }
        if !pause(&mut stopping, EVERY).await {
            return;
        }
    }
}

async fn round(worker: &Guard, memory: &mut Memory) -> Result<(), StoreError> {
    // First, and written at once: the rest takes longer, and fails while a server of the store is unreachable.
    let unwitnessed = memory.lost.check_next(&worker.base.store).await;
    memory.list.lost = memory.lost.next();
    let held = memory.lost.count() as u64;
    worker.base.metrics.room.lost_accounts.set(level(held));
    let written = write_list(worker, memory).await;
    lost::update_witnesses(&worker.base.store, unwitnessed).await;
    written?;
    memory.rotation.renew(&worker.base.store).await?;
    let accounts = memory.rotation.next(ACCOUNTS);
    let reads = stream::iter(accounts).map(|account| async move {
        let usage = read_usage(worker, &account).await?;
        Ok::<_, StoreError>((account, usage))
    });
    let mut reads = reads.buffer_unordered(AT_ONCE);
    while let Some(read) = reads.next().await {
        let (account, usage) = read?;
        memory.accounts.insert(account, usage);
    }
    let store = server_info::read(&worker.base.store).await?;
    let is_nearly_full = store.memory_fullest >= worker.guard_share && store.memory_max > 0;
    memory.list.room = refused(&memory.accounts, is_nearly_full, store.memory_max);
    set_metrics(worker, memory);
    write_list(worker, memory).await
}

/// Writes the list, unless both it and the last one are empty.
async fn write_list(worker: &Guard, memory: &mut Memory) -> Result<(), StoreError> {
    if !memory.list.is_empty() || memory.has_written_entries {
        refused::write(&worker.base.store, &memory.list).await?;
        memory.has_written_entries = !memory.list.is_empty();
    }
    Ok(())
}

async fn read_usage(worker: &Guard, account: &str) -> Result<AccountUsage, StoreError> {
    let budgets = worker.base.store.budgets();
    let mut sum = AccountUsage::default();
    for realm in Mode::ALL.map(|mode| Realm::new(account, mode)) {
        let usage = Usage::read(&worker.base.store, &realm).await?;
        sum.add(&usage, &budgets);
    }
    Ok(sum)
}

impl AccountUsage {
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    fn add(&mut self, usage: &Usage, budgets: &Budgets) {
        self.bytes = self.bytes.saturating_add(usage.bytes());
        self.over_audit |= usage.count(Budget::AuditEntries) >= budgets.limit(Budget::AuditEntries);
        for (share, budget) in self.shares.iter_mut().zip(Budget::ALL) {
            let used = usage.count(budget) as f64 / budgets.limit(budget).max(1) as f64;
            *share = share.max(used);
        }
    }
}

/// Returns the accounts to refuse: those over the budget of audit entries, and in a nearly full store also those that
/// use far more than the median account. If the list cannot hold all of them, it has the largest.
fn refused(
    accounts: &HashMap<String, AccountUsage>,
    is_nearly_full: bool,
    memory_max: u64,
) -> BTreeMap<String, Cause> {
    let mut sizes: Vec<u64> = accounts.values().map(|seen| seen.bytes).collect();
    sizes.sort_unstable();
    // The lower of two middle values: with only one other account, an account can still be far above it.
    let median = sizes.get(sizes.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    let far_above = median.saturating_mul(TIMES_MEDIAN).max(memory_max / LEAST_PART);
    let cause = |seen: &AccountUsage| {
        if seen.over_audit {
            return Some(Cause::AuditEntries);
        }
        (is_nearly_full && seen.bytes > far_above).then_some(Cause::Share)
    };
    let found = accounts
        .iter()
        .filter_map(|(id, seen)| Some((id, seen.bytes, cause(seen)?)));
    let mut found: Vec<_> = found.collect();
    found.sort_unstable_by(|(a, more, _), (b, less, _)| less.cmp(more).then(a.cmp(b)));
    let largest = found.into_iter().take(REFUSED_MAX);
    largest.map(|(id, _, cause)| (id.clone(), cause)).collect()
}

fn set_metrics(worker: &Guard, memory: &Memory) {
    let metrics = &worker.base.metrics.room;
    metrics.refused_accounts.set(level(memory.list.room.len() as u64));
    for budget in Budget::ALL {
        let shares = memory.accounts.values().map(|seen| seen.shares[budget as usize]);
        metrics.fullest(budget, shares.fold(0.0, f64::max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(sizes: &[(&str, u64)]) -> HashMap<String, AccountUsage> {
        let seen = |bytes| AccountUsage {
            bytes,
            ..AccountUsage::default()
        };
        sizes
            .iter()
            .map(|(id, bytes)| ((*id).to_owned(), seen(*bytes)))
            .collect()
    }

    fn names(list: &BTreeMap<String, Cause>) -> Vec<&str> {
        list.keys().map(String::as_str).collect()
    }

    #[test]
    fn whoever_is_far_above_the_median_is_refused_in_a_nearly_full_store() {
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
    fn whoever_is_over_the_budget_of_audit_entries_is_refused_at_once() {
        let mut all = accounts(&[("a", 50), ("b", 60)]);
        all.insert(
            "c".to_owned(),
            AccountUsage {
                over_audit: true,
                ..AccountUsage::default()
            },
        );
        let list = refused(&all, false, 0);
        assert_eq!(list, [("c".to_owned(), Cause::AuditEntries)].into());
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
