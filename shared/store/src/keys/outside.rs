//! Key names outside the buckets: look-ups, the operator's settings, and counters of attempts.
//!
//! On a cluster such a key can be lost with its server while the record stays, or the reverse. Each is safe for one of
//! these reasons:
//!
//! | key | why |
//! |---|---|
//! | [`virtual_key_lookup`], [`api_key_lookup`] | The name is the hash of 256 random bits, so it is unique. Written before the record, and again, with confirmation, after it (`store.durability`); only then is the secret shown. The record has the hash, so `ledger check` reports a missing look-up. |
//! | [`user_lookup`] | Contains the accounts with a user of the e-mail address. Written and confirmed before and after the user; removed if the account was certainly not created. `ledger check` reports one that is missing or leads to no user. A lost one is restored by adding the user again; signing in with the account id needs none. It counts only while the account has the user. |
//! | [`invitation_lookup`](super::invitation_lookup), [`reset_lookup`](super::reset_lookup), [`session_lookup`](super::session_lookup) | Random tokens. A lost one admits nobody: the invitation is revoked and created again, the reset issued again, or the user signs in again. |
//! | [`deposit_lookup`] | Confirmed before and after the deposit; removed if the deposit is refused. `ledger check` reports one that lacks a pending deposit. If it is lost, the operator specifies the account. |
//! | [`ACCOUNTS`] | Confirmed before the account is created, so every account is listed. |
//! | [`BLOCKED`] | Confirmed before the operator receives the result of a change. A server that saw a higher version keeps missing ranges blocked, and logs them (`store/blocked/copy.rs`). |
//! | [`PRICES`] | Confirmed before the operator receives the result of an import. |
//! | [`PRICE_TABLES`] | Each edge offers its table again every hour. |
//! | [`STORE`] | Written by the operator, who checks it after a failover (docs/explanation/durability.md); a store without it denies everything. |
//! | [`REFUSED`] | Renewed by a worker every few seconds. |
//! | [`FOLLOWED`] | The same, and by changes of money. |
//! | [`attempts`](super::attempts) | Counters; a loss only forgets a few attempts. |

use sha2::{Digest, Sha256};

/// The store's own record: ledger epoch and the secret of the key checksum.
pub const STORE: &str = "tollgate/store";
/// The set of all account ids.
pub const ACCOUNTS: &str = "tollgate/accounts";
/// The prices that the operator imported. They take precedence over the file.
pub const PRICES: &str = "tollgate/prices";
/// Price tables by which edges charge and which the archive does not have yet (hash of version to text).
pub const PRICE_TABLES: &str = "tollgate/price-tables";
/// The addresses that both servers refuse (hash of range to `<since ms> <reason>`), and `version` (`<count>-<random>`),
/// whose count increases with each change.
pub const BLOCKED: &str = "tollgate/blocked";
/// The refused accounts (lines `<account> <cause>`, `<account> lost_writes <generation>`). Expires if no worker renews
/// it.
pub const REFUSED: &str = "tollgate/refused";
/// `run_id` of a single server that a replica follows. Expires after the time for which that replica is still expected.
pub const FOLLOWED: &str = "tollgate/followed";

/// Account and key of a virtual key's hash. Immutable.
pub fn virtual_key_lookup(sha256_hex: &str) -> String {
    format!("tollgate/vk/{sha256_hex}")
}

/// Account and key of an API key's hash. Immutable.
pub fn api_key_lookup(sha256_hex: &str) -> String {
    format!("tollgate/ak/{sha256_hex}")
}

/// Accounts with a user of an e-mail address (in lower case), one per line. A line outlives its user only if a removal
/// was interrupted, and counts only if the account has a user with this address.
pub fn user_lookup(email: &str) -> String {
    format!("tollgate/user/{}", hex::encode(Sha256::digest(email.as_bytes())))
}

/// Accounts and modes with a pending deposit of this rail reference (set of `<account> <mode>`), since an operator
/// confirms a deposit by its reference alone.
pub fn deposit_lookup(reference: &str) -> String {
    format!(
        "tollgate/deposit/{}",
        hex::encode(Sha256::digest(reference.as_bytes()))
    )
}
