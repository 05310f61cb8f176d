//! Compares two sets of records that must have equal numbers of each item, without storing them: each side sums a hash
//! of every item, and equal sums mean equal sides. Sums are kept in partitions. If those of a partition differ, the
//! next pass stores its items and reports those without a counterpart.

use super::violation::Invariant;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};

/// Partitions of each comparison.
const PARTITIONS: usize = 1 << 14;
/// Maximum number of items that a pass stores.
const ITEMS_MAX: usize = 500_000;

/// The item of [`Comparison::TransactionList`], as reported.
pub(super) const LIST: &str = "a list";

/// The two sides of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Comparison {
    /// Settled intents that moved money, and transactions that name an intent.
    IntentTransaction,
    /// The lists that each intent belongs in, and those that contain it.
    IntentList,
    /// Confirmed deposits, and their transactions.
    Deposit,
    /// Money movements by the escrows' records, and the transactions of escrows.
    EscrowMoney,
    /// Parties that released or disputed escrows by the escrows' records, and the settled intents of these operations.
    EscrowWinner,
    /// Lists of transactions that exist, and those that should exist.
    TransactionList,
    /// Wallets and escrows, and the look-ups of their numbers.
    Place,
    /// Parties of escrows, and the lists that contain them.
    EscrowList,
    /// The accounts with a user of an e-mail address, and those in its look-up.
    Email,
    /// Settled intents, and their audit entries.
    TrailIntent,
    /// Deposits, and their audit entries.
    TrailDeposit,
    /// Steps of escrows, and their audit entries.
    TrailEscrow,
}

const COMPARISONS: usize = Comparison::TrailEscrow as usize + 1;

/// Kind of the records that a comparison's keys name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// Intents, by their ids.
    Intent,
    /// Deposits, by their references.
    Deposit,
    /// Escrows, by their numbers.
    Escrow,
    /// Keys of the store, or other names that are reported as they are.
    Key,
}

/// Invariant and words with which a mismatch of a comparison is reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    pub(super) invariant: Invariant,
    pub(super) subject: Subject,
    /// The words before the items that only the side of the records has.
    pub(super) records: &'static str,
    /// The words before the items that only the other side has.
    pub(super) matches: &'static str,
}

impl Comparison {
    /// Returns how a mismatch is reported.
    pub(super) const fn report(self) -> Report {
        let (invariant, subject, records, matches) = match self {
            Self::IntentTransaction => (
                Invariant::Intent,
                Subject::Intent,
                "the intent records",
                "its transactions are",
            ),
            Self::IntentList => (
                Invariant::Intent,
                Subject::Intent,
                "it belongs in",
                "it is listed in",
            ),
            Self::Deposit => (
                Invariant::Pending,
                Subject::Key,
                "the confirmed deposit is",
                "its transactions are",
            ),
            Self::EscrowMoney => (
                Invariant::EscrowState,
                Subject::Escrow,
                "its status requires",
                "its transactions are",
            ),
            Self::EscrowWinner => (
                Invariant::EscrowState,
                Subject::Escrow,
                "its record names as resolving intent",
                "its settled releases and disputes are",
            ),
            Self::TransactionList => (
                Invariant::WalletBalance,
                Subject::Key,
                "there is",
                "there should be",
            ),
            Self::Place => (
                Invariant::Names,
                Subject::Key,
                "the number belongs to",
                "its look-up names",
            ),
            Self::EscrowList => (
                Invariant::Names,
                Subject::Escrow,
                "its party is",
                "it is in the list of",
            ),
            Self::Email => (Invariant::Names, Subject::Key, "users of it are in", "it names"),
            Self::TrailIntent => (
                Invariant::Trail,
                Subject::Intent,
                "the settled intent is",
                "its audit entries say",
            ),
            Self::TrailDeposit => (
                Invariant::Trail,
                Subject::Deposit,
                "the deposit is",
                "its audit entries say",
            ),
            Self::TrailEscrow => (
                Invariant::Trail,
                Subject::Escrow,
                "the escrow is",
                "its audit entries say",
            ),
        };
        Report {
            invariant,
            subject,
            records,
            matches,
        }
    }

    /// Returns whether one side is the audit trail.
    pub(super) fn is_of_trail(self) -> bool {
        self.report().invariant == Invariant::Trail
    }

    /// Returns whether both sides come from the scan of the keys.
    const fn is_walked(self) -> bool {
        matches!(self, Self::EscrowWinner | Self::Place | Self::Email)
    }
}

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// A record, which the scan of the keys may return twice.
    Record,
    /// A counterpart. Each one counts.
    Match,
    /// Money in transit that may have arrived since: a counterpart only if there is no [`Side::Match`].
    InTransit,
}

/// An item without a counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) comparison: Comparison,
    /// Account and mode; empty if they may differ between the sides.
    pub(super) place: String,
    pub(super) key: String,
    /// Items that are only on the side of the records.
    pub(super) records: Vec<String>,
    /// Items that are only on the other side.
    pub(super) matches: Vec<String>,
    /// The audit entries that were compared.
    pub(super) entries: Vec<u64>,
}

#[derive(Debug, Default)]
struct Items {
    records: Vec<String>,
    matches: Vec<String>,
    in_transit: Vec<String>,
    entries: Vec<u64>,
}

/// Indexes of the sums that differed.
pub(super) type Suspects = HashSet<usize>;

/// All comparisons of one pass.
#[derive(Debug)]
pub(super) struct Reconciliation {
    seed: RandomState,
    sums: Vec<u64>,
    suspects: Suspects,
    items: BTreeMap<(Comparison, String, String), Items>,
    held: usize,
}

impl Reconciliation {
    /// Creates the comparisons of a pass that stores the items of `suspects`, which were found with the same seed.
    pub(super) fn new(seed: RandomState, suspects: Suspects) -> Self {
        Self {
            seed,
            sums: vec![0; COMPARISONS * PARTITIONS],
            suspects,
            items: BTreeMap::new(),
            held: 0,
        }
    }

    /// Adds the item `parts`, which is about `key` in `place`.
    pub(super) fn add(
        &mut self,
        comparison: Comparison,
        side: Side,
        (place, key): (&str, &str),
        parts: &[&str],
    ) {
        let mut hasher = self.seed.build_hasher();
        (comparison, place, key).hash(&mut hasher);
        let partition = usize::try_from(hasher.finish() % PARTITIONS as u64).unwrap_or(0);
        parts.hash(&mut hasher);
        let item = hasher.finish();
        let at = comparison as usize * PARTITIONS + partition;
        let sum = &mut self.sums[at];
        *sum = match side {
            Side::Record => sum.wrapping_add(item),
            Side::Match | Side::InTransit => sum.wrapping_sub(item),
        };
        if self.held < ITEMS_MAX && self.suspects.contains(&at) {
            self.held += 1;
            let items = self
                .items
                .entry((comparison, place.to_owned(), key.to_owned()))
                .or_default();
            let label = parts.join(" ");
            match side {
                // A record that the scan of the keys returns twice counts once.
                Side::Record if items.records.contains(&label) => {}
                Side::Match if comparison.is_walked() && items.matches.contains(&label) => {}
                Side::Record => items.records.push(label),
                Side::Match => items.matches.push(label),
                Side::InTransit => items.in_transit.push(label),
            }
        }
    }

    /// Adds the audit entry of an item, if items are stored.
    pub(super) fn add_entry(&mut self, comparison: Comparison, (place, key): (&str, &str), seq: u64) {
        let name = (comparison, place.to_owned(), key.to_owned());
        if let Some(items) = self.items.get_mut(&name) {
            items.entries.push(seq);
        }
    }

    /// Ends the pass. Returns the partitions whose sums differ, and the items without a counterpart in the partitions
    /// that were suspected before.
    pub(super) fn finish(self) -> (Suspects, Vec<Mismatch>) {
        let differ = self.sums.iter().enumerate().filter(|(_, sum)| **sum != 0);
        let suspects = differ.map(|(at, _)| at).collect();
        let mismatch = self
            .items
            .into_iter()
            .filter_map(|((comparison, place, key), mut items)| {
                let entries = std::mem::take(&mut items.entries);
                let (records, matches) = difference(items);
                let mismatch = Mismatch {
                    comparison,
                    place,
                    key,
                    records,
                    matches,
                    entries,
                };
                (!mismatch.records.is_empty() || !mismatch.matches.is_empty()).then_some(mismatch)
            });
        (suspects, mismatch.collect())
    }
}

/// Returns the items that are only on one side.
fn difference(items: Items) -> (Vec<String>, Vec<String>) {
    let Items {
        mut records,
        mut matches,
        mut in_transit,
        entries: _,
    } = items;
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
    (records, matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item<'a> = (Side, &'a str, &'a [&'a str]);

    /// Makes two passes over the same items. Returns the items without a counterpart.
    fn mismatch(comparison: Comparison, items: &[Item<'_>]) -> Vec<Mismatch> {
        let seed = RandomState::new();
        let mut reconciliation = Reconciliation::new(seed.clone(), Suspects::new());
        let pass = |reconciliation: &mut Reconciliation| {
            for (side, key, parts) in items {
                reconciliation.add(comparison, *side, ("acct live", key), parts);
            }
        };
        pass(&mut reconciliation);
        let (suspects, none) = reconciliation.finish();
        assert!(none.is_empty(), "a first pass stores no items");
        let mut reconciliation = Reconciliation::new(seed, suspects);
        pass(&mut reconciliation);
        reconciliation.finish().1
    }

    #[test]
    fn equal_sides_are_not_suspected() {
        let mut reconciliation = Reconciliation::new(RandomState::new(), Suspects::new());
        for n in 0..1000 {
            let key = n.to_string();
            reconciliation.add(Comparison::Deposit, Side::Record, ("a live", &key), &["x", &key]);
            reconciliation.add(Comparison::Deposit, Side::Match, ("a live", &key), &["x", &key]);
        }
        assert_eq!(reconciliation.finish(), (Suspects::new(), Vec::new()));
    }

    #[test]
    fn items_without_a_counterpart_are_reported() {
        let found = mismatch(
            Comparison::IntentTransaction,
            &[
                (Side::Record, "1", &["txn_1", "5"]),
                (Side::Match, "1", &["txn_1", "6"]),
                (Side::Record, "2", &["txn_2", "5"]),
                (Side::Match, "2", &["txn_2", "5"]),
                (Side::Match, "3", &["txn_3", "5"]),
            ],
        );
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].key.as_str(), found[1].key.as_str()), ("1", "3"));
        assert_eq!(found[0].records, ["txn_1 5"]);
        assert_eq!(found[0].matches, ["txn_1 6"]);
        assert_eq!(found[1].records, Vec::<String>::new());
    }

    #[test]
    fn a_record_seen_twice_is_one_and_a_match_seen_twice_is_two() {
        let twice = [
            (Side::Record, "1", &["x"][..]),
            (Side::Record, "1", &["x"]),
            (Side::Match, "1", &["x"]),
        ];
        assert_eq!(mismatch(Comparison::EscrowMoney, &twice), []);
        let paid_twice = [
            (Side::Record, "1", &["x"][..]),
            (Side::Match, "1", &["x"]),
            (Side::Match, "1", &["x"]),
        ];
        assert_eq!(mismatch(Comparison::EscrowMoney, &paid_twice).len(), 1);
        assert_eq!(
            mismatch(Comparison::EscrowWinner, &paid_twice),
            [],
            "both sides come from the scan of the keys"
        );
    }

    #[test]
    fn money_in_transit_counts_until_it_has_arrived() {
        let there = (Side::Match, "1", &["x"][..]);
        let (record, transit) = (
            (Side::Record, "1", &["x"][..]),
            (Side::InTransit, "1", &["x"][..]),
        );
        assert_eq!(mismatch(Comparison::EscrowMoney, &[record, transit]), []);
        assert_eq!(
            mismatch(Comparison::EscrowMoney, &[record, transit, there]),
            [],
            "it arrived meanwhile"
        );
        assert_eq!(mismatch(Comparison::EscrowMoney, &[transit]).len(), 1);
    }
}
