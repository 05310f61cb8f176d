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
        if self.questions.is_empty() {
            return;
        }
        if let Some(question) = self.questions.get_mut(&(account_mode, deposit.owner.clone())) {
            question.take(deposit);
        }
    }

    /// Answers the questions of the previous pass, once all deposits are read.
    pub(crate) fn answer_questions(&mut self) {
        for ((account_mode, owner), question) in std::mem::take(&mut self.questions) {
            if let Some(wrong) = question.answer() {
                let key = self.accounts.realm(account_mode).wallet(&owner);
                self.wrong(Invariant::Pending, &[&key], wrong);
            }
        }
    }
}
