//! Collecting and counting transfers.

use super::WaitingTransfer;
use crate::book::AccountMode;
use crate::pass::Pass;
use crate::reconcile::{Comparison, Side};
use crate::violation::Invariant;
use store::transaction::{Transaction, TransactionType};
use store::transit::Transit;

impl Pass<'_> {
    /// Collects a row whose money had not arrived at the cut.
    pub(crate) fn waiting_transfer(&mut self, account_mode: AccountMode, row: &Transit) {
        if let Some(credit) = &row.credit {
            self.transfers.waiting.push(WaitingTransfer {
                from: credit.counterparty.clone(),
                to_account: row.to_account.clone(),
                mode: account_mode.mode,
                to_wallet: row.to_wallet,
                nanos: credit.nanos,
            });
        }
    }

    /// Adds the collected rows, once all wallets are read.
    pub(crate) fn end_of_waiting_transfers(&mut self) {
        for account_mode in self.accounts.account_modes() {
            let page = self.page(account_mode);
            if let Some(user) = page.user_wallet() {
                let closed: Vec<u64> = page.closed.iter().copied().collect();
                self.transfers
                    .instead
                    .extend(closed.into_iter().map(|number| (number, user)));
            }
        }
        for row in std::mem::take(&mut self.transfers.waiting) {
            let account = self.accounts.find(&row.to_account);
            let account_mode = account.map(|account| AccountMode {
                account,
                mode: row.mode,
            });
            let Some(account_mode) = account_mode else {
                if !self.accounts.partial {
                    // Nobody receives it.
                    self.transfer(Side::InTransit, (&row.from, "no wallet"), row.nanos);
                }
                continue;
            };
            // It goes to the user wallet if the account has no such wallet.
            let page = self.page(account_mode);
            let to = match page.wallets.contains_key(&row.to_wallet) {
                true => Some(row.to_wallet),
                false => page.user_wallet(),
            };
            // No wallet has the number 0.
            let is_ours = self.is_of_pass(account_mode, row.from.parse().unwrap_or(0));
            let to = to.map_or("no wallet".to_owned(), |to| self.receiver(to));
            if is_ours {
                self.transfer(Side::InTransit, (&row.from, &to), row.nanos);
            }
        }
    }

    /// Processes the transaction of a transfer.
    pub(crate) fn transferred(&mut self, account_mode: AccountMode, number: u64, transaction: &Transaction) {
        let (from_ms, cut_ms) = self.rows.window();
        // A row of the last millisecond may have been read.
        if transaction.at_ms > cut_ms {
            return;
        }
        let other = transaction.tail.counterparty.as_deref().unwrap_or_default();
        let Ok(other) = other.parse::<u64>() else {
            let key = self.accounts.realm(account_mode).transactions();
            let detail = "it names no other wallet";
            return self.add_violation(Invariant::Transit, &[&format!("{key} {number}")], detail);
        };
        if !self.is_of_pass(account_mode, other) {
            return;
        }
        let is_sent = transaction.kind == TransactionType::TransferOut;
        let side = match (is_sent, transaction.at_ms < from_ms) {
            (true, true) => Side::Record,
            (true, false) => Side::RecordMeanwhile,
            (false, true) => Side::Match,
            (false, false) => Side::MatchMeanwhile,
        };
        let (from, to) = match is_sent {
            true => (transaction.wallet, other),
            false => (other, transaction.wallet),
        };
        let to = self.receiver(to);
        self.transfer(side, (&from.to_string(), &to), transaction.amount.get());
    }

    fn transfer(&mut self, side: Side, (from, to): (&str, &str), nanos: u64) {
        let key = format!("transfer of {nanos} nanos from wallet {from} to {to}");
        self.reconcile_across(Comparison::Transfer, side, &key, &[]);
    }

    /// Returns whether the pass checks both wallets of a transfer: one of `account_mode`, and `other`.
    fn is_of_pass(&mut self, account_mode: AccountMode, other: u64) -> bool {
        !self.accounts.partial || self.page(account_mode).wallets.contains_key(&other)
    }

    /// Returns the name of the wallet that receives what was sent to wallet `number`.
    fn receiver(&self, number: u64) -> String {
        let instead = self.transfers.instead.get(&number).unwrap_or(&number);
        instead.to_string()
    }
}
