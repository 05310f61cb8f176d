//! Money in transit between accounts, and the conservation of money: deposits minus spends equal the money in wallets,
//! escrows and transit.
//!
//! Both are computed for one moment, the cut. Every transaction has the time of the store's clock, so those before the
//! cut are a snapshot of all accounts, whenever they are read. Rows are read just before the cut. Only money that moved
//! while the rows were read is uncertain, and the sum may differ by that amount.

mod pass;

use super::book::AccountMode;
use super::replay::signed;
use std::collections::{BTreeMap, HashMap};
use store::transaction::{Transaction, TransactionType};

/// Maximum difference between the clocks of a cluster's servers.
pub(super) const CLOCKS_APART_MS: u64 = 2000;

#[derive(Debug, Default)]
pub(super) struct Rows {
    /// When the reading of the rows began.
    from_ms: u64,
    /// End of the cut.
    pub(super) cut_ms: u64,
    /// Debits that must be among the transactions of their account: row and amount, by account, mode and id.
    wanted: HashMap<(AccountMode, String), (String, u64)>,
}

impl Rows {
    /// Returns the start and the end of the time in which the rows were read. The end is the cut.
    pub(super) const fn window(&self) -> (u64, u64) {
        (self.from_ms, self.cut_ms)
    }
}

/// Money movements in one mode, over all accounts, up to the cut.
#[derive(Debug, Default)]
pub(super) struct Flow {
    deposits: i128,
    spends: i128,
    wallets: i128,
    /// Amounts held by escrows, each once.
    held: BTreeMap<u64, u64>,
    /// Sum of the rows with money that has not arrived.
    transit: i128,
    /// Moved between accounts or escrows while the rows were read.
    uncertain: i128,
}

impl Flow {
    /// Adds an escrow, with the times of its funding and its resolution.
    pub(super) fn escrow(
        &mut self,
        (escrow, amount): (u64, u64),
        (funded, resolved): (u64, Option<u64>),
        rows: &Rows,
    ) {
        let window = rows.from_ms..=rows.cut_ms;
        if resolved.is_some_and(|at| window.contains(&at)) && !self.held.contains_key(&escrow) {
            self.uncertain += i128::from(amount);
        }
        let held = funded < rows.cut_ms && resolved.is_none_or(|at| at >= rows.cut_ms);
        self.held.insert(escrow, if held { amount } else { 0 });
    }

    fn take(&mut self, transaction: &Transaction, (from_ms, cut_ms): (u64, u64)) {
        let amount = i128::from(transaction.amount.get());
        let crosses = !matches!(
            transaction.kind,
            TransactionType::Deposit | TransactionType::Spend
        );
        if crosses && (from_ms..=cut_ms).contains(&transaction.at_ms) {
            self.uncertain += amount;
        }
        if transaction.at_ms >= cut_ms {
            return;
        }
        self.wallets += signed(transaction);
        match transaction.kind {
            TransactionType::Deposit => self.deposits += amount,
            TransactionType::Spend => self.spends += amount,
            _ => {}
        }
    }

    /// Returns whether the money is conserved.
    fn sum(&self) -> Sum {
        let held: i128 = self.held.values().map(|amount| i128::from(*amount)).sum();
        let should = self.deposits - self.spends;
        let is = self.wallets + held + self.transit;
        let apart = (should - is).abs();
        if apart == 0 {
            return Sum::Right;
        }
        let fault = format!(
            "deposits minus spends are {should} nanos, but wallets {} + escrows {held} + transit {} sum to {is}: {apart} {}",
            self.wallets,
            self.transit,
            if should > is {
                "are missing"
            } else {
                "are too many"
            }
        );
        if apart > self.uncertain {
            return Sum::Violated(fault);
        }
        Sum::Inconclusive(format!(
            "{fault}; up to {} moved during the check, or within the maximum difference of the servers' clocks",
            self.uncertain
        ))
    }
}

/// Result for the money of a mode.
#[derive(Debug, PartialEq, Eq)]
enum Sum {
    Right,
    /// The difference may result from movements during the read.
    Inconclusive(String),
    Violated(String),
}

/// Returns the escrow in the id of a row: `escrow:<number>:<new status>`.
fn escrow_of(id: &str) -> Option<u64> {
    id.strip_prefix("escrow:")?.split(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests;
