//! Transfers between wallets, within an account and between two: each that was sent was received once, with its amount,
//! in the wallet that it names, or waits in transit. Balances, and the sum of all money, also agree if one transfer was
//! lost and another arrived twice, or if one was led to another wallet.
//!
//! The two transactions of a transfer have no common id, so those from one wallet to another with one amount are
//! counted. Both sides are those of one moment, the cut of [`transit`](super::transit); money that moved while the rows
//! were read may be on one side only.
//!
//! Money for a wallet that was closed on its way goes to the account's user wallet. So closed wallets count as the user
//! wallet.

mod pass;

use domain::mode::Mode;
use std::collections::HashMap;

/// The transfers of a pass.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    /// Rows with money that had not arrived at the cut.
    waiting: Vec<WaitingTransfer>,
    /// The wallet whose transfers those of a closed wallet may be.
    instead: HashMap<u64, u64>,
}

/// Money that waits.
#[derive(Debug)]
struct WaitingTransfer {
    from: String,
    to_account: String,
    mode: Mode,
    to_wallet: u64,
    nanos: u64,
}
