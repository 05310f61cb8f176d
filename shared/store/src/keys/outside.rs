//! Key names outside the buckets: look-ups, the operator's settings, and counters of attempts.
//!
//! On a cluster another server can lose such a key while the record stays, or the reverse. Each is safe for one of
//! these reasons:
//!
//! | key | why |
//! |---|---|
//! | [`virtual_key_lookup`], [`api_key_lookup`] | The name is the hash of 256 random bits, so nothing can take it twice. Written before the record, written again and confirmed after it (`store.durability`), and only then is the secret shown. The record has the hash: `ledger check` names a look-up that is gone. |
//! | [`user_lookup`] | Names the accounts that have a user of the e-mail; written and confirmed before and after the user is; taken back where the account was certainly not made. `ledger check` names one that is gone, or leads to nobody. Lost, it is written again by whoever adds the user again; signing in with the account named needs none; and it counts only while the account has the user. |
//! | [`invitation_lookup`](super::invitation_lookup), [`reset_lookup`](super::reset_lookup), [`session_lookup`](super::session_lookup) | Random tokens. A lost one lets nobody in: the invitation is revoked and made again, the reset issued again, the user signs in again. |
//! | [`deposit_lookup`] | Confirmed before the deposit is, and after it; taken back where the deposit is refused. `ledger check` names one that lacks a pending deposit. Lost, the operator names the account. |
//! | [`ACCOUNTS`] | Confirmed before the account is made, so every account is listed. |
//! | [`BLOCKED`] | Confirmed before the operator is told of a change. A server that saw a higher version keeps what is gone blocked, and says so (`store/blocked/copy.rs`). |
//! | [`PRICES`] | Confirmed before the operator is told of an import. |
//! | [`STORE`] | Written by the operator, who looks at it after a failover (docs/explanation/durability.md); a store without it denies everything. |
//! | [`REFUSED`] | Renewed by a worker every few seconds. |
//! | [`attempts`](super::attempts) | Counts; what is lost is a few attempts. |
//! | [`wallet_lookup`], [`escrow_lookup`], [`WALLET_NUMBER`], [`ESCROW_NUMBER`] | Of an earlier version, and only read: nothing gets a number from there any more. |

use sha2::{Digest, Sha256};

/// The store's own record: ledger epoch and the secret of the key checksum.
pub const STORE: &str = "tollgate/store";
/// The set of all account ids.
pub const ACCOUNTS: &str = "tollgate/accounts";
/// The prices imported by the operator, which overlay the file.
pub const PRICES: &str = "tollgate/prices";
/// The addresses that both servers turn away (hash of range to `<since ms> <reason>`), and `version`
/// (`<count>-<random>`), whose count rises with each change.
pub const BLOCKED: &str = "tollgate/blocked";
/// The accounts that are refused (lines `<account> <cause>`, `<account> lost_writes <generation>`). It ends when no
/// worker renews it.
pub const REFUSED: &str = "tollgate/refused";
/// The last wallet number that an earlier version gave. Nothing reads it.
pub const WALLET_NUMBER: &str = "tollgate/wallet-number";
/// The last escrow number that an earlier version gave. Nothing reads it.
pub const ESCROW_NUMBER: &str = "tollgate/escrow-number";

/// Immutable: which account and key a virtual key's hash belongs to.
pub fn virtual_key_lookup(sha256_hex: &str) -> String {
    format!("tollgate/vk/{sha256_hex}")
}

/// Immutable: which account and key an API key's hash belongs to.
pub fn api_key_lookup(sha256_hex: &str) -> String {
    format!("tollgate/ak/{sha256_hex}")
}

/// Which accounts have a user of an e-mail (in lower case), a line for each. One outlives its user only when a removal
/// was cut off, and holds only when the account has a user of that e-mail.
pub fn user_lookup(email: &str) -> String {
    format!("tollgate/user/{}", hex::encode(Sha256::digest(email.as_bytes())))
}

/// Immutable, of an earlier version: which account, mode and owner a wallet belongs to, by its number (`17`) and by its
/// id (`wal_…`). It was written before the wallet, so it holds only when a record names the same wallet.
pub fn wallet_lookup(name: &str) -> String {
    format!("tollgate/wallet/{name}")
}

/// Immutable, of an earlier version: the payer's account and mode of an escrow. It was written before the escrow, so it
/// holds only when there is one.
pub fn escrow_lookup(number: u64) -> String {
    format!("tollgate/escrow/{number}")
}

/// Which accounts and modes have a pending deposit of this rail reference (set of `<account> <mode>`), since an
/// operator confirms a deposit by its reference alone.
pub fn deposit_lookup(reference: &str) -> String {
    format!(
        "tollgate/deposit/{}",
        hex::encode(Sha256::digest(reference.as_bytes()))
    )
}
