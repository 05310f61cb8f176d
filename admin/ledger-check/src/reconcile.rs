//! Compares two sets of records that must have equal numbers of each item, without storing them: each side sums a hash
//! of every item, and equal sums mean equal sides. Sums are kept in partitions. If those of a partition differ, the
//! next pass stores its items and reports those without a counterpart. A partition is stored whole or not at all: if
//! there are too many items, the pass forgets partitions, and those of them that still differ remain for the next one.

mod comparison;

pub(super) use comparison::{ComparedKind, Comparison, MismatchWords};

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};

/// Partitions of each comparison.
pub(super) const PARTITIONS: usize = 1 << 14;
/// Maximum number of items that a pass stores.
const ITEMS_MAX: usize = 500_000;

/// The item of [`Comparison::TransactionList`], as reported.
pub(super) const LIST: &str = "a list";

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// A record, which the scan of the keys may return twice.
    Record,
    /// A counterpart. Each one counts.
    Match,
    /// Money in transit that may have arrived since: a counterpart only if there is no [`Side::Match`].
    InTransit,
    /// A record of [`Comparison::Transfer`] whose counterpart may be missing, since it moved during the read.
    RecordMeanwhile,
    /// The same of a counterpart.
    MatchMeanwhile,
}

const COMPARISONS: usize = Comparison::ALL.len();

/// An item without a counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) comparison: Comparison,
    /// Account and mode; empty if they may differ between the sides.
    pub(super) account_mode: String,
    pub(super) key: String,
    /// Items that are only on the side of the records.
    pub(super) records: Vec<String>,
    /// Items that are only on the other side.
    pub(super) matches: Vec<String>,
    /// The audit entries that were compared.
    pub(super) entries: Vec<u64>,
}

#[derive(Debug, Default)]
struct KeyItems {
    records: Vec<String>,
    matches: Vec<String>,
    in_transit: Vec<String>,
    entries: Vec<u64>,
    tally: TransferCounts,
}

/// Numbers of equal transfers.
#[derive(Debug, Default)]
struct TransferCounts {
    sent: u64,
    received: u64,
    waiting: u64,
    sent_meanwhile: u64,
    received_meanwhile: u64,
}

impl TransferCounts {
    const fn add(&mut self, side: Side) {
        match side {
            Side::Record => self.sent += 1,
            Side::Match => self.received += 1,
            Side::InTransit => self.waiting += 1,
            Side::RecordMeanwhile => self.sent_meanwhile += 1,
            Side::MatchMeanwhile => self.received_meanwhile += 1,
        }
    }

    /// Returns how many were only sent, and how many were only received or wait. What moved during the read is the
    /// counterpart of others if they need it, and needs none itself.
    const fn apart(&self) -> (u64, u64) {
        let not_received = self.sent.saturating_sub(self.received);
        let not_waiting = not_received.saturating_sub(self.waiting);
        let not_sent = self.received.saturating_sub(self.sent) + self.waiting.saturating_sub(not_received);
        (
            not_waiting.saturating_sub(self.received_meanwhile),
            not_sent.saturating_sub(self.sent_meanwhile),
        )
    }
}

/// Indexes of the sums that differed.
pub(super) type Suspects = HashSet<usize>;

/// The items of a partition, by account, mode and key.
#[derive(Debug, Default)]
struct PartitionItems {
    items: HashMap<(String, String), KeyItems>,
    /// Their number.
    count: usize,
}

/// All comparisons of one pass.
#[derive(Debug)]
pub(super) struct Reconciliation {
    seed: RandomState,
    sums: Vec<u64>,
    suspects: Suspects,
    /// The items of the suspects, by partition and comparison.
    stored: BTreeMap<(usize, Comparison), PartitionItems>,
    /// Suspects of which no items are stored any more.
    forgotten: Suspects,
    held: usize,
    /// Maximum number of stored items.
    items_max: usize,
}

/// Result of a pass.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reconciled {
    /// Partitions whose sums differ, and have differed in each pass.
    pub(super) suspects: Suspects,
    /// The items without a counterpart in the partitions that were suspected before.
    pub(super) mismatch: Vec<Mismatch>,
    /// Numbers of partitions that differ, but whose items were too many to be stored.
    pub(super) left_out: Vec<(Comparison, usize)>,
}

impl Reconciliation {
    /// Creates the comparisons of a pass that stores the items of `suspects`, which were found with the same seed.
    pub(super) fn new(seed: RandomState, suspects: Suspects) -> Self {
        Self {
            seed,
            sums: vec![0; COMPARISONS * PARTITIONS],
            suspects,
            stored: BTreeMap::new(),
            forgotten: Suspects::new(),
            held: 0,
            items_max: ITEMS_MAX,
        }
    }

    /// Adds the item `parts`, which is about `key` in `account_mode`.
    pub(super) fn add(
        &mut self,
        comparison: Comparison,
        side: Side,
        (account_mode, key): (&str, &str),
        parts: &[&str],
    ) {
        let (partition, mut hasher) = self.partition(comparison, (account_mode, key));
        parts.hash(&mut hasher);
        let item = hasher.finish();
        let at = index(comparison, partition);
        let sum = &mut self.sums[at];
        *sum = match side {
            Side::Record | Side::RecordMeanwhile => sum.wrapping_add(item),
            Side::Match | Side::InTransit | Side::MatchMeanwhile => sum.wrapping_sub(item),
        };
        if !self.suspects.contains(&at) || self.forgotten.contains(&at) {
            return;
        }
        let stored = self.stored.entry((partition, comparison)).or_default();
        let keys = stored.items.len();
        let items = stored
            .items
            .entry((account_mode.to_owned(), key.to_owned()))
            .or_default();
        if comparison == Comparison::Transfer {
            items.tally.add(side);
            if stored.items.len() == keys {
                return;
            }
        } else {
            let label = parts.join(" ");
            match side {
                // A record that the scan of the keys returns twice counts once.
                Side::Record if items.records.contains(&label) => return,
                Side::Match if comparison.is_walked() && items.matches.contains(&label) => return,
                Side::Record | Side::RecordMeanwhile => items.records.push(label),
                Side::Match | Side::MatchMeanwhile => items.matches.push(label),
                Side::InTransit => items.in_transit.push(label),
            }
        }
        stored.count += 1;
        self.held += 1;
        // Each pass forgets the same ones first, so that the next pass can confirm the findings of this one.
        while self.held > self.items_max
            && let Some(((partition, comparison), stored)) = self.stored.pop_last()
        {
            self.held -= stored.count;
            self.forgotten.insert(index(comparison, partition));
        }
    }

    /// Adds the audit entry of an item, if items are stored.
    pub(super) fn add_entry(&mut self, comparison: Comparison, (account_mode, key): (&str, &str), seq: u64) {
        let partition = self.partition(comparison, (account_mode, key)).0;
        let stored = self.stored.get_mut(&(partition, comparison));
        let name = (account_mode.to_owned(), key.to_owned());
        if let Some(items) = stored.and_then(|stored| stored.items.get_mut(&name)) {
            items.entries.push(seq);
        }
    }

    /// Returns the partition of a key, and the hasher to which its items are added.
    fn partition(
        &self,
        comparison: Comparison,
        (account_mode, key): (&str, &str),
    ) -> (usize, impl Hasher + use<>) {
        let mut hasher = self.seed.build_hasher();
        (comparison, account_mode, key).hash(&mut hasher);
        let partition = usize::try_from(hasher.finish() % PARTITIONS as u64).unwrap_or(0);
        (partition, hasher)
    }

    /// Ends the pass.
    pub(super) fn finish(self) -> Reconciled {
        let is_first = self.suspects.is_empty();
        let differ = self.sums.iter().enumerate().filter(|(_, sum)| **sum != 0);
        let differ = differ.map(|(at, _)| at);
        let suspects: Suspects = differ
            .filter(|at| is_first || self.suspects.contains(at))
            .collect();
        let left_out = Comparison::ALL.into_iter().filter_map(|comparison| {
            let of_it = |at: &&usize| **at / PARTITIONS == comparison as usize;
            let parts = self.forgotten.intersection(&suspects).filter(of_it).count();
            (parts > 0).then_some((comparison, parts))
        });
        let left_out = left_out.collect();
        let stored = self.stored.into_iter();
        let items = stored.flat_map(|((_, comparison), stored)| {
            let items = stored.items.into_iter();
            items.map(move |((account_mode, key), items)| (comparison, account_mode, key, items))
        });
        let mut mismatch: Vec<Mismatch> = items
            .filter_map(|(comparison, account_mode, key, mut items)| {
                let entries = std::mem::take(&mut items.entries);
                let (records, matches) = difference(items);
                let mismatch = Mismatch {
                    comparison,
                    account_mode,
                    key,
                    records,
                    matches,
                    entries,
                };
                (!mismatch.records.is_empty() || !mismatch.matches.is_empty()).then_some(mismatch)
            })
            .collect();
        mismatch.sort_by(|one, other| {
            let other_name = (other.comparison, &other.account_mode, &other.key);
            (one.comparison, &one.account_mode, &one.key).cmp(&other_name)
        });
        Reconciled {
            suspects,
            mismatch,
            left_out,
        }
    }
}

/// Returns the index of a partition's sum.
const fn index(comparison: Comparison, partition: usize) -> usize {
    comparison as usize * PARTITIONS + partition
}

/// Returns the items that are only on one side.
fn difference(items: KeyItems) -> (Vec<String>, Vec<String>) {
    let KeyItems {
        mut records,
        mut matches,
        mut in_transit,
        entries: _,
        tally,
    } = items;
    let (sent, received) = tally.apart();
    matches.retain(|label| match records.iter().position(|record| record == label) {
        Some(at) => {
            records.swap_remove(at);
            // The same money, once in transit and once arrived.
            if let Some(at) = in_transit.iter().position(|other| other == label) {
                in_transit.swap_remove(at);
            }
            false
        }
        None => true,
    });
    in_transit.retain(|label| match records.iter().position(|record| record == label) {
        Some(at) => {
            records.swap_remove(at);
            false
        }
        None => true,
    });
    matches.extend(in_transit);
    records.extend((sent > 0).then(|| sent.to_string()));
    matches.extend((received > 0).then(|| received.to_string()));
    (records, matches)
}

#[cfg(test)]
mod tests;
