//! The wallets that the records of escrows name: each belongs to the account and owner that the record names with it,
//! open or closed. Otherwise the money of the escrow would go to an account that the payer did not choose.
//!
//! A wallet's number leads to its account and owner for ever. Where a look-up says something else than the escrow, the
//! wallets themselves decide, since a look-up may be lost too.

mod pass;

use super::drive::BATCH;
use domain::mode::Mode;

/// A wallet that an escrow names.
pub(super) struct EscrowWallet {
    /// Key of the escrow.
    escrow: String,
    /// The field that has the wallet's number.
    field: &'static str,
    number: u64,
    account: String,
    mode: Mode,
    owner: String,
}

/// Wallets of escrows that a pass collected.
#[derive(Default)]
pub(super) struct EscrowWallets {
    unread: Vec<EscrowWallet>,
    /// Wallets whose look-ups do not name the owner, with the name that they have.
    unconfirmed: Vec<(EscrowWallet, Option<String>)>,
}

impl EscrowWallets {
    /// Returns whether the collected wallets should be read before more are collected.
    pub(super) const fn is_full(&self) -> bool {
        self.unread.len() >= BATCH
    }
}
