//! Collecting and comparing the wallets of escrows.

use super::EscrowWallet;
use crate::book::AccountMode;
use crate::drive::{Job, drive};
use crate::names::place_read;
use crate::pass::Pass;
use crate::record::EscrowFields;
use crate::violation::Invariant;
use domain::number::Number;
use store::StoreError;
use store::keys::Series;

/// Maximum number of wallets that are compared once more, which are none in an intact store.
const UNCONFIRMED_MAX: usize = 10_000;

impl Pass<'_> {
    /// Collects the wallets of an escrow that `account_mode` pays.
    pub(crate) fn wallets_of_escrow(
        &mut self,
        account_mode: AccountMode,
        key: &str,
        escrow: &EscrowFields<'_>,
    ) {
        let payer = self.accounts.id(account_mode);
        for (field, number, account, owner) in [
            ("from", escrow.from, payer, escrow.from_owner),
            ("to", escrow.to, escrow.to_account, escrow.to_owner),
        ] {
            self.escrow_wallets.unread.push(EscrowWallet {
                escrow: key.to_owned(),
                field,
                // No wallet has the number 0.
                number: number.parse().unwrap_or(0),
                account: account.to_owned(),
                mode: account_mode.mode,
                owner: owner.to_owned(),
            });
        }
    }

    /// Reads the look-ups of the collected wallets.
    pub(crate) async fn read_escrow_wallets(&mut self) -> Result<(), StoreError> {
        let unread = std::mem::take(&mut self.escrow_wallets.unread);
        let unconfirmed = &mut self.escrow_wallets.unconfirmed;
        let mut jobs = Vec::with_capacity(unread.len());
        for wallet in unread {
            match Number::from_u64(wallet.number) {
                Some(number) => jobs.push(Job::new([place_read(Series::Wallet, number)], wallet)),
                None if unconfirmed.len() < UNCONFIRMED_MAX => unconfirmed.push((wallet, None)),
                None => {}
            }
        }
        drive(self.store, jobs.into_iter(), |wallet, mut answers| {
            let found = answers.text();
            let EscrowWallet {
                account, mode, owner, ..
            } = &wallet;
            let named = found.as_deref().unwrap_or_default().splitn(4, ' ');
            let is_named = named.take(3).eq([account.as_str(), mode.as_str(), owner]);
            if !is_named && unconfirmed.len() < UNCONFIRMED_MAX {
                unconfirmed.push((wallet, found));
            }
        })
        .await
    }

    /// Compares the wallets that remained open with the records of the wallets, once these are read.
    pub(crate) fn check_escrow_wallets(&mut self) {
        for (wallet, found) in std::mem::take(&mut self.escrow_wallets.unconfirmed) {
            let EscrowWallet {
                escrow,
                field,
                number,
                account,
                mode,
                owner,
            } = wallet;
            let known = self.accounts.find(&account).map(|account| {
                let account_mode = AccountMode { account, mode };
                let wallet = self.page(account_mode).wallets.get(&number);
                wallet.is_some_and(|wallet| wallet.owner == owner)
            });
            // The wallets of an account that is not checked are not known, only their look-ups.
            let is_wrong = match known {
                Some(is_known) => !is_known,
                None => !self.accounts.partial || found.is_some(),
            };
            if is_wrong {
                let detail =
                    format!("it names wallet {number}, which is not one of {owner} in {account} ({mode})");
                self.add_violation(Invariant::EscrowState, &[&format!("{escrow} {field}")], detail);
            }
        }
    }
}
