//! Transactions, and the entries that tell of them. A script writes both in one step, so they come in the same order:
//! side by side they are compared without holding more than those that are out of step.

use super::legs::{Leg, LegKey, key_of};
use std::collections::{HashMap, VecDeque};
use store::transaction::Transaction;

/// Entries and transactions without their like that are held; what is beyond is not named.
const HELD_MAX: usize = 100_000;

/// Something that does not agree: number of the transaction, number of the entry, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disagreement {
    pub(super) transaction: Option<u64>,
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
    /// Whether there were more than can be held.
    pub(super) is_full: bool,
    pub(super) odd: Vec<Disagreement>,
}

impl Unmatched {
    pub(super) fn new(user: Option<u64>) -> Self {
        Self {
            user,
            ..Self::default()
        }
    }

    /// Takes in what entry `seq` tells; `next` is the key of the next transaction.
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

    /// Takes in the transaction `number`.
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
                wrong.push(format!("{what} is {is}, and the entry says {says}"));
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
        if let Some(balance) = leg.balance {
            let after = transaction.balance_after.get().to_string();
            differs("the balance after it in nanos", &after, &balance.to_string());
        }
        if let Some(id) = &leg.id {
            differs("the id", &transaction.id, id);
        }
        let (at, says) = (transaction.at_ms.to_string(), leg.at_ms.to_string());
        differs("the time in ms", &at, &says);
        self.is_full |= self.odd.len() >= HELD_MAX;
        if !wrong.is_empty() && !self.is_full {
            self.odd.push(Disagreement {
                transaction: Some(number),
                entry: Some(seq),
                detail: wrong.join("; "),
            });
        }
    }

    /// All are in: those that have no like are odd, too.
    pub(super) fn end(&mut self) {
        for (seq, leg) in std::mem::take(&mut self.legs).into_values().flatten() {
            let (kind, amount) = (leg.key.0.as_str(), leg.amount);
            self.odd.push(Disagreement {
                transaction: None,
                entry: Some(seq),
                detail: format!(
                    "the entry tells of a {kind} of {amount} nanos, and there is no such transaction"
                ),
            });
        }
        for (number, transaction) in std::mem::take(&mut self.transactions).into_values().flatten() {
            let (kind, amount) = (transaction.kind.as_str(), transaction.amount.get());
            self.odd.push(Disagreement {
                transaction: Some(number),
                entry: None,
                detail: format!("it is a {kind} of {amount} nanos, and no entry tells of it"),
            });
        }
        self.odd.sort_by_key(|odd| (odd.entry, odd.transaction));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trail::legs::Reader;
    use domain::entry::Entry;
    use domain::money::Nanos;

    const USER: u64 = 1;

    fn entry(seq: u64, kind: &str, data: &str, words: &str) -> Entry {
        let line = format!(
            r#"{seq} {} {{"type":"{kind}","agentId":"bot","actor":"key_1","data":{data}}} {words}"#,
            seq * 10
        );
        let entry = Entry::of_line(seq, line.trim_end().as_bytes());
        assert_eq!(entry.kind, kind, "{line}");
        entry
    }

    /// Everything that moves money once, in wallets 7 and 8 of the account; 9 is elsewhere.
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
            ("transfer.received", transfer(9, 7, "i1"), "credit=waiting"),
            ("transfer.received", transfer(9, 7, "i1"), ""),
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

    fn odd(entries: &[Entry], transactions: Vec<Transaction>) -> Vec<Disagreement> {
        let mut reader = Reader::new([USER, 7, 8].into());
        let mut join = Unmatched::new(Some(USER));
        let mut lines = (1..).zip(transactions).collect::<VecDeque<_>>();
        for entry in entries {
            for leg in reader.legs(entry).unwrap() {
                join.leg(
                    entry.seq,
                    leg,
                    lines.front().map(|(_, next)| key_of(next)).as_ref(),
                );
                if let Some((number, transaction)) = lines.pop_front() {
                    join.transaction(number, transaction);
                }
            }
        }
        for (number, transaction) in lines {
            join.transaction(number, transaction);
        }
        join.end();
        assert_eq!(
            join.held,
            join.odd.iter().filter(|odd| odd.detail.contains(" no ")).count()
        );
        join.odd
    }

    #[test]
    fn what_was_written_together_agrees() {
        assert_eq!(odd(&entries(), transactions()), []);
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
        // Deposit 2, which says all but the owner, and spend 7, which says that.
        for (at, seq, said) in [
            (1, 4, &["amount", "wallet", "balance", "time"][..]),
            (6, 10, &["amount", "owner", "time"]),
        ] {
            for (what, change) in changes {
                let mut changed = transactions();
                change(&mut changed[at]);
                let found = odd(&entries(), changed);
                assert_eq!(
                    found.len(),
                    usize::from(said.contains(&what)),
                    "{what}: {found:?}"
                );
                for odd in found {
                    assert_eq!((odd.transaction, odd.entry), (Some(at as u64 + 1), Some(seq)));
                    assert!(odd.detail.contains(what), "{what}: {odd:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_missing_on_either_side_is_named_alone() {
        for gone in 0..transactions().len() {
            let mut left = transactions();
            let taken = left.remove(gone);
            let found = odd(&entries(), left);
            assert_eq!(found.len(), 1, "{taken:?}: {found:?}");
            assert!(found[0].transaction.is_none() && found[0].detail.contains(taken.kind.as_str()));
        }
        for seq in [3, 4, 7, 9, 10, 12, 13, 15, 17] {
            let mut left = entries();
            left.retain(|entry| entry.seq != seq);
            let found = odd(&left, transactions());
            assert_eq!(found.len(), 1, "{seq}: {found:?}");
            assert!(found[0].entry.is_none() && found[0].detail.contains("no entry tells of it"));
        }
    }

    #[test]
    fn a_spend_moves_no_wallet_that_the_trail_knows_nothing_of() {
        let spends = &entries()[9..12];
        assert_eq!(odd(spends, Vec::new()), [], "only tracked");
        assert_eq!(
            odd(spends, transactions()[6..8].to_vec()),
            [],
            "a wallet of an earlier version"
        );
    }
}
