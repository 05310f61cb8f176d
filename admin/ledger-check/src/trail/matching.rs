//! Matches transactions with their audit entries. A script writes both in one step, so both have the same order. Only
//! those that are out of order are held in memory.

use super::legs::{Leg, LegKey, key_of};
use std::collections::{HashMap, VecDeque};
use store::transaction::Transaction;

/// Maximum number of held entries and transactions without a counterpart. Further ones are not reported.
const HELD_MAX: usize = 100_000;

/// A transaction and an entry that differ, or one without the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LegMismatch {
    /// Number of the transaction.
    pub(super) transaction: Option<u64>,
    /// Number of the entry.
    pub(super) entry: Option<u64>,
    pub(super) detail: String,
}

/// Entries and transactions without a counterpart so far.
#[derive(Debug, Default)]
pub(super) struct Unmatched {
    legs: HashMap<LegKey, VecDeque<(u64, Leg)>>,
    transactions: HashMap<LegKey, VecDeque<(u64, Transaction)>>,
    held: usize,
    /// Number of the account's user wallet.
    user: Option<u64>,
    /// True if [`HELD_MAX`] was reached, by mismatches or without a counterpart, so that not all were compared.
    pub(super) is_full: bool,
    pub(super) mismatches: Vec<LegMismatch>,
}

impl Unmatched {
    pub(super) fn new(user: Option<u64>) -> Self {
        Self {
            user,
            ..Self::default()
        }
    }

    /// Adds a leg of entry `seq`. `next` is the key of the next transaction.
    pub(super) fn leg(&mut self, seq: u64, leg: Leg, next: Option<&LegKey>) {
        if let Some(waiting) = self.transactions.get_mut(&leg.key)
            && let Some((number, transaction)) = waiting.pop_front()
        {
            self.held -= 1;
            return self.compare(number, &transaction, (seq, &leg));
        }
        if leg.optional && next != Some(&leg.key) {
            return;
        }
        if self.has_room() {
            self.legs
                .entry(leg.key.clone())
                .or_default()
                .push_back((seq, leg));
        }
    }

    pub(super) fn transaction(&mut self, number: u64, transaction: Transaction) {
        let key = key_of(&transaction);
        if let Some(waiting) = self.legs.get_mut(&key)
            && let Some((seq, leg)) = waiting.pop_front()
        {
            self.held -= 1;
            return self.compare(number, &transaction, (seq, &leg));
        }
        if self.has_room() {
            self.transactions
                .entry(key)
                .or_default()
                .push_back((number, transaction));
        }
    }

    fn has_room(&mut self) -> bool {
        self.is_full |= self.held >= HELD_MAX;
        self.held += usize::from(!self.is_full);
        !self.is_full
    }

    fn compare(&mut self, number: u64, transaction: &Transaction, (seq, leg): (u64, &Leg)) {
        let mut wrong = Vec::new();
        let mut differs = |what: &str, is: &str, says: &str| {
            if is != says {
                wrong.push(format!("{what} is {is}, but the entry records {says}"));
            }
        };
        let amount = transaction.amount.get().to_string();
        differs("the amount in nanos", &amount, &leg.amount.to_string());
        let to_user = leg.or_user && Some(transaction.wallet) == self.user;
        if let Some(wallet) = leg.wallet.filter(|_| !to_user) {
            differs("the wallet", &transaction.wallet.to_string(), &wallet.to_string());
        }
        if let Some(owner) = &leg.owner {
            differs("the owner", &transaction.owner, owner);
        }
        if let Some(counterparty) = &leg.counterparty {
            let of = transaction.tail.counterparty.as_deref().unwrap_or("nothing");
            differs("the counterparty", of, counterparty);
        }
        if let Some(balance) = leg.balance {
            let after = transaction.balance_after.get().to_string();
            differs("the balance after it in nanos", &after, &balance.to_string());
        }
        if let Some(id) = &leg.id {
            differs("the id", &transaction.id, id);
        }
        let (at, says) = (transaction.at_ms.to_string(), leg.at_ms.to_string());
        differs("the time in ms", &at, &says);
        self.is_full |= self.mismatches.len() >= HELD_MAX;
        if !wrong.is_empty() && !self.is_full {
            self.mismatches.push(LegMismatch {
                transaction: Some(number),
                entry: Some(seq),
                detail: wrong.join("; "),
            });
        }
    }

    /// Ends the comparison: those without a counterpart are mismatches.
    pub(super) fn end(&mut self) {
        for (seq, leg) in std::mem::take(&mut self.legs).into_values().flatten() {
            let (kind, amount) = (leg.key.0.as_str(), leg.amount);
            self.mismatches.push(LegMismatch {
                transaction: None,
                entry: Some(seq),
                detail: format!(
                    "the entry records a {kind} of {amount} nanos, but there is no such transaction"
                ),
            });
        }
        for (number, transaction) in std::mem::take(&mut self.transactions).into_values().flatten() {
            let (kind, amount) = (transaction.kind.as_str(), transaction.amount.get());
            self.mismatches.push(LegMismatch {
                transaction: Some(number),
                entry: None,
                detail: format!("it is a {kind} of {amount} nanos, but no entry records it"),
            });
        }
        self.mismatches
            .sort_by_key(|mismatch| (mismatch.entry, mismatch.transaction));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trail::legs::LegReader;
    use domain::entry::Entry;
    use domain::money::Nanos;

    const USER: u64 = 1;

    fn entry(seq: u64, kind: &str, data: &str, words: &str) -> Entry {
        let line = format!(
            r#"{seq} {} {{"type":"{kind}","agentId":"bot","actor":"key_1","data":{data}}} {words}"#,
            seq * 10
        );
        let entry = Entry::from_line(seq, line.trim_end().as_bytes());
        assert_eq!(entry.kind, kind, "{line}");
        entry
    }

    /// Everything that moves money once, in wallets 7 and 8 of the account; 6 is a closed one, and 9 is elsewhere.
    fn entries() -> Vec<Entry> {
        let deposit = |id: &str, state: &str| {
            format!(r#"{{"walletId":7,"transactionId":"{id}","amountNanos":"100","state":"{state}"}}"#)
        };
        let transfer = |from: u64, to: u64, id: &str| {
            format!(r#"{{"from":{from},"to":{to},"transactionId":"{id}","amountNanos":"5"}}"#)
        };
        let spend = |id: &str| format!(r#"{{"intentId":"{id}","amountNanos":"3"}}"#);
        let escrow = |to: u64, becomes: &str| {
            let parties = format!(r#""escrowId":4,"fromWalletId":7,"toWalletId":{to}"#);
            format!(r#"{{{parties},"amountNanos":"2","intentId":"int_e","becomes":"{becomes}"}}"#)
        };
        let lines = [
            ("agent.created", r#"{"walletId":7}"#.to_owned(), ""),
            ("deposit.requested", deposit("d1", "pending"), "outcome=settled"),
            ("deposit.confirmed", deposit("d1", "pending"), "balance_nanos=100"),
            (
                "deposit.requested",
                deposit("d2", "confirmed"),
                "outcome=settled balance_nanos=200",
            ),
            (
                "deposit.requested",
                deposit("d3", "confirmed"),
                "outcome=blocked reason=wallet_closed",
            ),
            ("transfer.requested", transfer(7, 8, "o1"), "outcome=settled"),
            ("transfer.requested", transfer(7, 9, "o2"), "outcome=settled"),
            ("transfer.received", transfer(9, 6, "i1"), "credit=waiting"),
            ("transfer.received", transfer(9, 6, "i1"), ""),
            ("spend.requested", spend("int_1"), "outcome=settled"),
            ("spend.requested", spend("int_2"), "outcome=pending_approval"),
            ("spend.approved", spend("int_2"), "outcome=settled"),
            ("escrow.fund", escrow(8, ""), "outcome=settled"),
            ("escrow.dispute", escrow(8, "disputed"), "outcome=settled"),
            ("escrow.resolve", escrow(8, "refunded"), "outcome=settled"),
            ("escrow.release", escrow(9, "released"), "outcome=settled"),
            ("escrow.released", escrow(7, ""), ""),
        ];
        let numbered = lines.into_iter().zip(1..);
        numbered
            .map(|((kind, data, words), seq)| entry(seq, kind, &data, words))
            .collect()
    }

    fn transactions() -> Vec<Transaction> {
        let lines = [
            "30 100 100 7 d1 deposit bot - USD {}",
            "40 200 100 7 d2 deposit bot - USD {}",
            r#"60 195 -5 7 o1 transfer_out bot - USD {"c":"8"}"#,
            r#"60 5 5 8 i0 transfer_in ann - USD {"c":"7"}"#,
            r#"70 190 -5 7 o2 transfer_out bot - USD {"c":"9"}"#,
            r#"90 5 5 1 i1 transfer_in user - USD {"c":"9"}"#,
            "100 187 -3 7 s1 spend bot int_1 USD {}",
            "120 184 -3 7 s2 spend bot int_2 USD {}",
            r#"130 182 -2 7 f1 escrow_fund bot int_e USD {"c":"escrow:4"}"#,
            r#"150 184 2 7 r1 escrow_refund bot - USD {"c":"escrow:4"}"#,
            r#"170 186 2 7 r2 escrow_release bot - USD {"c":"escrow:4"}"#,
        ];
        lines.map(|line| Transaction::parse(line).unwrap()).to_vec()
    }

    fn mismatches(entries: &[Entry], transactions: Vec<Transaction>) -> Vec<LegMismatch> {
        let mut reader = LegReader::new([USER, 6, 7, 8].into(), [6].into());
        let mut matching = Unmatched::new(Some(USER));
        let mut lines = (1..).zip(transactions).collect::<VecDeque<_>>();
        for entry in entries {
            for leg in reader.legs(entry).unwrap() {
                matching.leg(
                    entry.seq,
                    leg,
                    lines.front().map(|(_, next)| key_of(next)).as_ref(),
                );
                if let Some((number, transaction)) = lines.pop_front() {
                    matching.transaction(number, transaction);
                }
            }
        }
        for (number, transaction) in lines {
            matching.transaction(number, transaction);
        }
        matching.end();
        assert_eq!(
            matching.held,
            matching
                .mismatches
                .iter()
                .filter(|one| one.detail.contains(" no "))
                .count()
        );
        matching.mismatches
    }

    #[test]
    fn entries_and_their_transactions_match() {
        assert_eq!(mismatches(&entries(), transactions()), []);
    }

    #[test]
    fn each_changed_transaction_is_named_with_its_entry() {
        type Change = fn(&mut Transaction);
        let changes: [(&str, Change); 5] = [
            ("amount", |transaction| {
                transaction.amount = Nanos::from_stored(99)
            }),
            ("wallet", |transaction| transaction.wallet = 77),
            ("owner", |transaction| transaction.owner = "other".to_owned()),
            ("balance", |transaction| {
                transaction.balance_after = Nanos::from_stored(99)
            }),
            ("time", |transaction| transaction.at_ms += 1),
        ];
        // Deposit 2, whose entry has all but the owner, and spend 7, whose entry has the owner.
        for (at, seq, said) in [
            (1, 4, &["amount", "wallet", "balance", "time"][..]),
            (6, 10, &["amount", "owner", "time"]),
        ] {
            for (what, change) in changes {
                let mut changed = transactions();
                change(&mut changed[at]);
                let found = mismatches(&entries(), changed);
                assert_eq!(
                    found.len(),
                    usize::from(said.contains(&what)),
                    "{what}: {found:?}"
                );
                for mismatch in found {
                    assert_eq!(
                        (mismatch.transaction, mismatch.entry),
                        (Some(at as u64 + 1), Some(seq))
                    );
                    assert!(mismatch.detail.contains(what), "{what}: {mismatch:?}");
                }
            }
        }
    }

    /// Only the money of a closed wallet of the account goes to its user wallet.
    #[test]
    fn money_of_an_open_or_unowned_wallet_in_the_user_wallet_is_a_mismatch() {
        for (at, seq, wallets) in [(5, 9, [7, 77]), (10, 17, [7, 77])] {
            let mut diverted = transactions();
            (diverted[at].wallet, diverted[at].owner) = (USER, "user".to_owned());
            for wallet in wallets {
                let mut said = entries();
                let data = &mut said[seq - 1].data;
                for field in ["to", "toWalletId"] {
                    if let Some(to) = data.get_mut(field) {
                        *to = wallet.into();
                    }
                }
                let found = mismatches(&said, diverted.clone());
                assert_eq!(found.len(), 1, "{at} {wallet}: {found:?}");
                let detail = format!("the wallet is {USER}, but the entry records {wallet}");
                assert_eq!(found[0].detail, detail);
            }
        }
    }

    #[test]
    fn money_that_was_sent_to_another_than_the_entry_names_is_a_mismatch() {
        for (at, says) in [(2, "8"), (4, "9"), (8, "escrow:4")] {
            let mut changed = transactions();
            changed[at].tail.counterparty = Some("5".to_owned());
            let found = mismatches(&entries(), changed);
            assert_eq!(found.len(), 1, "{at}: {found:?}");
            let detail = format!("the counterparty is 5, but the entry records {says}");
            assert_eq!(found[0].detail, detail);
        }
    }

    #[test]
    fn a_missing_transaction_or_entry_is_one_mismatch() {
        for gone in 0..transactions().len() {
            let mut left = transactions();
            let taken = left.remove(gone);
            let found = mismatches(&entries(), left);
            assert_eq!(found.len(), 1, "{taken:?}: {found:?}");
            assert!(found[0].transaction.is_none() && found[0].detail.contains(taken.kind.as_str()));
        }
        for seq in [3, 4, 7, 9, 10, 12, 13, 15, 17] {
            let mut left = entries();
            left.retain(|entry| entry.seq != seq);
            let found = mismatches(&left, transactions());
            assert_eq!(found.len(), 1, "{seq}: {found:?}");
            assert!(found[0].entry.is_none() && found[0].detail.contains("no entry records it"));
        }
    }

    #[test]
    fn a_spend_without_a_wallet_in_the_trail_needs_no_transaction() {
        let spends = &entries()[9..12];
        assert_eq!(mismatches(spends, Vec::new()), [], "only tracked");
        assert_eq!(
            mismatches(spends, transactions()[6..8].to_vec()),
            [],
            "the entry does not say that a wallet paid"
        );
    }
}
