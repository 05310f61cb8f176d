//! Checks of a wallet: replays its transactions in the order of their numbers, and checks the lists that contain them.

use store::keys::Realm;
use store::read::Read;
use store::transaction::{Transaction, TransactionType};

/// Ascending numbers, reduced to their count and a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fold {
    pub(super) count: u64,
    hash: u64,
}

/// An odd multiplier, from splitmix64: it makes the hash depend on the order.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

impl Fold {
    pub(super) const fn push(&mut self, number: u64) {
        self.count += 1;
        self.hash = (self.hash ^ number).wrapping_mul(MIX).rotate_left(17);
    }
}

/// A wallet, with the running result of its transactions.
#[derive(Debug)]
pub(super) struct Replay {
    /// The agent's id, or `user`.
    pub(super) owner: String,
    /// Holder under which its transactions are listed.
    pub(super) holder: String,
    /// Key of its record.
    pub(super) key: String,
    /// Number of the last transaction included in `balance`; later ones came after the record was read.
    pub(super) seq: u64,
    /// Balance in the record.
    pub(super) balance: Option<u64>,
    sum: i128,
    /// True if a transaction was wrong. Only the first is reported.
    broken: bool,
    /// The numbers of all its transactions, and of those of each type.
    pub(super) lists: [Fold; 1 + TransactionType::ALL.len()],
}

/// Returns the read of the number of the last transaction.
pub(super) fn seq_of(realm: &Realm) -> Read {
    let field = format!("{}_txn_seq", realm.mode());
    Read::field(realm.bucket(), realm.record(), &field)
}

/// Returns the index of a type among the lists by type.
pub(super) fn place_of(kind: TransactionType) -> usize {
    TransactionType::ALL
        .iter()
        .position(|other| *other == kind)
        .unwrap_or(0)
}

/// Returns the signed amount of a transaction.
pub(super) fn signed(transaction: &Transaction) -> i128 {
    let amount = i128::from(transaction.amount.get());
    if transaction.kind.sign().is_empty() {
        amount
    } else {
        -amount
    }
}

impl Replay {
    pub(super) fn new(owner: String, holder: String, key: String, seq: u64, balance: Option<u64>) -> Self {
        Self {
            owner,
            holder,
            key,
            seq,
            balance,
            sum: 0,
            broken: false,
            lists: [Fold::default(); 8],
        }
    }

    /// Processes the transaction `number`. Returns its fault.
    pub(super) fn take(&mut self, number: u64, transaction: &Transaction) -> Option<String> {
        if number > self.seq {
            return None;
        }
        self.lists[0].push(number);
        self.lists[1 + place_of(transaction.kind)].push(number);
        self.sum += signed(transaction);
        if self.broken {
            return None;
        }
        let after = i128::from(transaction.balance_after.get());
        let wrong = if transaction.owner != self.owner {
            format!(
                "it names {} as the wallet's owner instead of {}",
                transaction.owner, self.owner
            )
        } else if self.sum < 0 {
            format!("the wallet falls to {} nanos", self.sum)
        } else if self.sum != after {
            format!(
                "the balance after it is {after} nanos, but should be {}",
                self.sum
            )
        } else {
            return None;
        };
        self.broken = true;
        Some(wrong)
    }

    /// Ends the replay. Returns the fault of the balance.
    pub(super) fn end(&self) -> Option<String> {
        match self.balance {
            None => Some("the balance is not a number".to_owned()),
            Some(_) if self.broken => None,
            Some(balance) if i128::from(balance) != self.sum => Some(format!(
                "the balance is {balance} nanos, but its transactions sum to {}",
                self.sum
            )),
            Some(_) => None,
        }
    }
}

/// A list of transaction numbers that is being read, to check that it begins with the expected ones.
#[derive(Debug, Default)]
pub(super) struct ListCheck {
    read: Fold,
    last: u64,
    wrong: Option<String>,
}

impl ListCheck {
    /// Processes the next items. The list must begin with `expected` numbers; later ones came after `seq`.
    pub(super) fn take(&mut self, items: Option<Vec<u64>>, expected: Fold, seq: u64) {
        let Some(items) = items else {
            self.note("it is not a list of numbers".to_owned());
            return;
        };
        for number in items {
            if number <= self.last {
                self.note(format!("{number} follows {}", self.last));
            }
            self.last = number;
            if self.read.count < expected.count {
                self.read.push(number);
            } else if number <= seq {
                self.note(format!("it contains {number}, which does not belong there"));
            }
        }
    }

    /// Ends the list; `now` is the last number assigned when it was read. Returns the fault.
    pub(super) fn end(mut self, expected: Fold, now: u64) -> Option<String> {
        if self.last > now {
            self.note(format!(
                "it contains {}, but there is no such transaction",
                self.last
            ));
        }
        if self.read.count < expected.count {
            let (count, expected) = (self.read.count, expected.count);
            self.note(format!("it has {count} numbers instead of {expected}"));
        } else if self.read != expected {
            self.note("it contains other numbers than expected".to_owned());
        }
        self.wrong
    }

    /// Notes the first fault.
    fn note(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(kind: TransactionType, amount: u64, after: u64) -> Transaction {
        let line = format!(
            "5 {after} {}{amount} 7 txn_1 {} bot - USD {{}}",
            kind.sign(),
            kind.as_str()
        );
        Transaction::parse(&line).unwrap()
    }

    fn replay(seq: u64, balance: &str) -> Replay {
        let key = "record".to_owned();
        Replay::new("bot".to_owned(), "bot".to_owned(), key, seq, balance.parse().ok())
    }

    use TransactionType::{Deposit, Spend};

    #[test]
    fn a_right_wallet_is_right() {
        let mut wallet = replay(2, "70");
        assert_eq!(wallet.take(1, &transaction(Deposit, 100, 100)), None);
        assert_eq!(wallet.take(2, &transaction(Spend, 30, 70)), None);
        // It came after the record was read.
        assert_eq!(wallet.take(3, &transaction(Spend, 30, 40)), None);
        assert_eq!(wallet.end(), None);
        assert_eq!(wallet.lists.map(|list| list.count), [2, 1, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn a_wrong_one_is_reported_once_where_it_begins() {
        let mut wallet = replay(3, "71");
        assert_eq!(wallet.take(1, &transaction(Deposit, 100, 100)), None);
        assert!(
            wallet
                .take(2, &transaction(Spend, 30, 71))
                .unwrap()
                .contains("should be 70")
        );
        assert_eq!(wallet.take(3, &transaction(Spend, 1, 70)), None);
        assert_eq!(wallet.end(), None);
        let mut wallet = replay(1, "0");
        assert!(
            wallet
                .take(1, &transaction(Spend, 30, 0))
                .unwrap()
                .contains("-30")
        );
        let mut wallet = replay(1, "99");
        assert_eq!(wallet.take(1, &transaction(Deposit, 100, 100)), None);
        assert!(wallet.end().unwrap().contains("99"));
        assert!(replay(0, "x").end().is_some());
        let mut other = replay(1, "100");
        other.owner = "other".to_owned();
        assert!(
            other
                .take(1, &transaction(Deposit, 100, 100))
                .unwrap()
                .contains("owner")
        );
    }

    fn listed(items: &[u64], now: u64) -> Option<String> {
        let mut expected = Fold::default();
        for number in [2, 3, 5] {
            expected.push(number);
        }
        let mut check = ListCheck::default();
        for part in items.chunks(2) {
            check.take(Some(part.to_vec()), expected, 5);
        }
        check.end(expected, now)
    }

    #[test]
    fn a_list_has_the_right_numbers_in_order() {
        assert_eq!(listed(&[2, 3, 5], 5), None);
        assert_eq!(listed(&[2, 3, 5, 6, 9], 9), None, "what came later");
        for (wrong, sentence) in [
            (&[2, 3][..], "2 numbers instead of 3"),
            (&[], "0 numbers"),
            (&[2, 4, 5], "other numbers"),
            (&[2, 5, 3], "3 follows 5"),
            (&[2, 3, 5, 5], "5 follows 5"),
            (&[2, 3, 5, 10], "no such transaction"),
            (&[1, 2, 3, 5], "5"),
        ] {
            let found = listed(wrong, 9).unwrap_or_default();
            assert!(found.contains(sentence), "{wrong:?}: {found}");
        }
        let mut check = ListCheck::default();
        check.take(None, Fold::default(), 0);
        assert!(check.end(Fold::default(), 0).is_some());
    }
}
