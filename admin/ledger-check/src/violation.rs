//! Findings: violated invariants, and the records involved.

use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of violations that one pass stores; further ones are only counted.
const KEPT_MAX: usize = 20_000;
/// Maximum number of findings that no pass confirmed.
const INCONCLUSIVE_MAX: usize = 1_000;

domain::words! {
    /// A rule that always holds.
    #[derive(PartialOrd, Ord)]
    pub enum Invariant {
        /// Replaying a wallet's transactions from zero yields the recorded balance after each, and the wallet's
        /// balance. No balance is below zero, the numbers have no gap, and each list has exactly the right numbers in
        /// order.
        WalletBalance = "wallet-balance",
        /// Deposits minus spends equal the money in wallets, escrows and transit.
        Conservation = "conservation",
        /// A wallet's pending amount is the sum of its pending deposits. Each confirmed deposit has its transaction.
        Pending = "pending",
        /// Each escrow has the transactions that its status requires, its look-up exists, it is in the sets of open
        /// escrows that its status requires, and its wallets belong to the accounts and owners that it names.
        EscrowState = "escrow-state",
        /// Each settled intent has its transaction and the reverse. Its timeline is unchanged, and it is in the right
        /// lists.
        Intent = "intent",
        /// Days add up to the month, agents to their account, and no counter is below its known charges. The counters
        /// of text are the sums of the texts. Each run of the index of runs has its record.
        Counters = "counters",
        /// Each open or kept hold is in its index, and the reverse.
        Holds = "holds",
        /// The audit log has every number up to the last assigned one.
        AuditSequence = "audit-sequence",
        /// Each row in transit is valid, and its amount was debited from its sender. Each transfer that was sent was
        /// received once, in the wallet that it names, or waits.
        Transit = "transit",
        /// No account's version is below the one that its witness recorded: otherwise the store lost writes.
        Versions = "versions",
        /// The look-up of each number, id, key and e-mail names the one record that has it (e-mails: one in each
        /// account), and each record has its look-up, pending deposits by their reference. Each escrow is in the lists
        /// of its parties. No number that has a record can be drawn again.
        Names = "names",
        /// Agents and accounts have the limits of their policies, exactly the listed agents are frozen, and each active
        /// virtual key is an unrevoked one of its agent.
        Policies = "policies",
        /// Transactions, deposits, settled intents and escrows each have their audit entries and the reverse. Counters
        /// are the sums of the entries' charges.
        Trail = "trail",
        /// Every key of the store matches a key name of Tollgate's.
        UnknownKey = "unknown-key",
    }
}

impl Serialize for Invariant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The violated invariant.
    pub invariant: Invariant,
    /// Keys of the records that disagree, the one most likely at fault first.
    pub records: Vec<String>,
    /// Description of the fault.
    pub detail: String,
}

/// An invariant that a check could not decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inconclusive {
    /// Invariant without a result.
    pub invariant: Invariant,
    /// Keys of the records, or the mode, in question.
    pub records: Vec<String>,
    /// Why it could not be decided, as a sentence.
    pub reason: String,
}

/// Identity of a violation across passes: its invariant, its records, and the difference, if that may move.
type ViolationIdentity = (Invariant, Vec<String>, String);

/// The violations of one pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: BTreeMap<ViolationIdentity, Violation>,
    /// Number of violations that were not stored.
    pub(super) dropped: u64,
}

impl Findings {
    /// Adds a violation between records that must agree at any time.
    pub(super) fn add(&mut self, invariant: Invariant, records: &[&str], detail: impl Into<String>) {
        self.keep(invariant, records, String::new(), detail.into());
    }

    /// Adds a violation that may result from reads at different times. The next pass confirms it only if what differs,
    /// `apart`, is also unchanged.
    pub(super) fn add_moving(
        &mut self,
        invariant: Invariant,
        records: &[&str],
        apart: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.keep(invariant, records, apart.into(), detail.into());
    }

    fn keep(&mut self, invariant: Invariant, records: &[&str], apart: String, detail: String) {
        let records: Vec<String> = records.iter().map(|record| (*record).to_owned()).collect();
        if self.found.len() >= KEPT_MAX {
            self.dropped += 1;
            return;
        }
        let name = (invariant, records.clone(), apart);
        let violation = Violation {
            invariant,
            records,
            detail,
        };
        self.found.entry(name).or_insert(violation);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns whether both have the same violations.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.found.keys().eq(other.found.keys())
    }

    /// Returns the violations that the previous pass also found, and an inconclusive result for each record that it
    /// found wrong in another way. What only one of the passes found came from reads at different times.
    pub(super) fn confirmed_by(self, before: &Self) -> (Vec<Violation>, Vec<Inconclusive>) {
        let (mut confirmed, mut inconclusive) = (Vec::new(), Vec::new());
        for (name, violation) in self.found {
            if before.found.contains_key(&name) {
                confirmed.push(violation);
                continue;
            }
            let first = (name.0, name.1, String::new());
            let mut others = before.found.range(&first..);
            if others
                .next()
                .is_some_and(|(other, _)| (other.0, &other.1) == (first.0, &first.1))
            {
                inconclusive.push(Inconclusive {
                    invariant: violation.invariant,
                    records: violation.records,
                    reason: format!(
                        "each pass found it wrong in another way, the last one: {}",
                        violation.detail
                    ),
                });
            }
        }
        inconclusive.truncate(INCONCLUSIVE_MAX);
        (confirmed, inconclusive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_identified_by_its_numbers() {
        let mut passes = [Findings::default(), Findings::default()];
        for (pass, (findings, number)) in passes.iter_mut().zip(["1", "2"]).enumerate() {
            findings.add(Invariant::Holds, &["a"], format!("seen {number}"));
            let seen = format!("seen {number}");
            findings.add_moving(Invariant::Counters, &["b"], number, &seen);
            findings.add_moving(Invariant::Counters, &["c"], "still", &seen);
            findings.add_moving(Invariant::Counters, &[&seen], number, "only in this pass");
            assert!(!findings.is_empty() && findings.dropped == 0, "pass {pass}");
        }
        let [before, last] = passes;
        assert!(!before.same(&last) && before.same(&before));
        let (confirmed, inconclusive) = last.confirmed_by(&before);
        let records: Vec<&str> = confirmed.iter().map(|one| one.records[0].as_str()).collect();
        assert_eq!(records, ["c", "a"], "in the order of the invariants");
        let records: Vec<&str> = inconclusive.iter().map(|one| one.records[0].as_str()).collect();
        assert_eq!(records, ["b"], "found twice, and undecided: {inconclusive:?}");
        assert!(inconclusive[0].reason.ends_with("seen 2"), "{inconclusive:?}");
    }

    #[test]
    fn no_more_are_kept_than_the_bound() {
        let mut findings = Findings::default();
        for n in 0..=KEPT_MAX {
            findings.add(Invariant::UnknownKey, &[&n.to_string()], "");
        }
        assert_eq!((findings.found.len(), findings.dropped), (KEPT_MAX, 1));
    }
}
