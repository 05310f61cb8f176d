//! Reading and comparing pending deposits.

use crate::book::AccountMode;
use crate::pass::Pass;
use crate::violation::Invariant;
use store::deposit::{Deposit, DepositState};

impl Pass<'_> {
    /// Processes a deposit.
    pub(crate) fn pending(&mut self, account_mode: AccountMode, deposit: &Deposit) {
        if deposit.state == DepositState::Pending {
            self.owner(account_mode, &deposit.owner).pending += u128::from(deposit.amount.get());
        }
        if self.earlier_checks.is_empty() {
            return;
        }
        if let Some(check) = self
            .earlier_checks
            .get_mut(&(account_mode, deposit.owner.clone()))
        {
            check.take(deposit);
        }
    }

    /// Finishes the checks of the previous pass, once all deposits are read.
    pub(crate) fn finish_earlier_checks(&mut self) {
        for ((account_mode, owner), check) in std::mem::take(&mut self.earlier_checks) {
            if let Some(fault) = check.fault() {
                let key = self.accounts.realm(account_mode).wallet(&owner);
                self.add_violation(Invariant::Pending, &[&key], fault);
            }
        }
    }
}
