//! Pending money: the amount in the record of a wallet, and the sum of its pending deposits.
//!
//! Deposits are read before the wallets, and more may be created in between. So a pass that finds a difference only
//! records a check. The next pass reads all deposits of that time, and computes the amount that was pending then.

mod pass;

use super::book::AccountMode;
use std::collections::HashMap;
use store::deposit::{Deposit, DepositState};

/// A wallet whose pending amount differs from the deposits that were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingCheck {
    /// Amount in the wallet's record.
    recorded: u64,
    /// Start and end of the time in which it was read.
    window: (u64, u64),
    /// The amount that was certainly pending then.
    sum: u128,
    /// The additional amount that may have been pending then.
    uncertain: u128,
}

/// The pending checks of a pass, by account, mode and owner.
pub(super) type PendingChecks = HashMap<(AccountMode, String), PendingCheck>;

impl PendingCheck {
    pub(super) const fn new(recorded: u64, window: (u64, u64)) -> Self {
        Self {
            recorded,
            window,
            sum: 0,
            uncertain: 0,
        }
    }

    /// Processes a deposit of the wallet.
    fn take(&mut self, deposit: &Deposit) {
        if deposit.first != DepositState::Pending {
            return;
        }
        let (from, to) = self.window;
        let confirmed = deposit.confirmed.map(|(at, _)| at);
        let ended = confirmed.or(deposit.cancelled_ms).unwrap_or(u64::MAX);
        let amount = u128::from(deposit.amount.get());
        if deposit.at_ms < from && ended > to {
            self.sum += amount;
        } else if deposit.at_ms <= to && ended >= from {
            self.uncertain += amount;
        }
    }

    /// Returns the fault, once all deposits are added.
    fn fault(&self) -> Option<String> {
        let recorded = u128::from(self.recorded);
        let right = (self.sum..=self.sum + self.uncertain).contains(&recorded);
        (!right).then(|| {
            format!(
                "{recorded} nanos are pending, but its pending deposits sum to {}",
                self.sum
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::Nanos;

    fn deposit(nanos: u64, at_ms: u64, confirmed_ms: Option<u64>) -> Deposit {
        Deposit {
            id: "txn_1".to_owned(),
            reference: "r".to_owned(),
            owner: "bot".to_owned(),
            wallet: 7,
            amount: Nanos::from_stored(nanos),
            currency: "USD".to_owned(),
            state: confirmed_ms.map_or(DepositState::Pending, |_| DepositState::Confirmed),
            first: DepositState::Pending,
            first_balance: Nanos::ZERO,
            at_ms,
            confirmed: confirmed_ms.map(|at| (at, Nanos::ZERO)),
            cancelled_ms: None,
        }
    }

    fn fault(recorded: u64, deposits: &[Deposit]) -> Option<String> {
        let mut check = PendingCheck::new(recorded, (100, 110));
        deposits.iter().for_each(|deposit| check.take(deposit));
        check.fault()
    }

    #[test]
    fn the_pending_amount_is_computed_later() {
        let then = [
            deposit(5, 1, None),
            deposit(7, 2, Some(120)),
            deposit(100, 3, Some(99)),
            deposit(200, 111, None),
        ];
        assert_eq!(fault(12, &then), None);
        assert!(fault(11, &then).unwrap().contains("sum to 12"));
        assert!(fault(13, &then).is_some());
        assert_eq!(fault(0, &[]), None);
        let mut at_once = deposit(5, 1, None);
        at_once.first = DepositState::Confirmed;
        assert_eq!(fault(0, &[at_once]), None, "it never was pending");
    }

    #[test]
    fn a_cancelled_deposit_was_pending_until_then() {
        let cancelled = |at_ms| Deposit {
            state: DepositState::Cancelled,
            cancelled_ms: Some(at_ms),
            ..deposit(5, 1, None)
        };
        assert_eq!(fault(5, &[cancelled(111)]), None);
        assert!(fault(0, &[cancelled(111)]).is_some());
        assert_eq!(fault(0, &[cancelled(99)]), None);
        for recorded in [0, 5] {
            assert_eq!(fault(recorded, &[cancelled(105)]), None);
        }
    }

    #[test]
    fn changes_during_the_read_of_a_wallet_may_count_or_not() {
        let then = [
            deposit(5, 1, None),
            deposit(7, 105, None),
            deposit(1, 2, Some(100)),
        ];
        for recorded in [5, 12, 6, 13] {
            assert_eq!(fault(recorded, &then), None);
        }
        assert!(fault(4, &then).is_some() && fault(14, &then).is_some());
    }
}
