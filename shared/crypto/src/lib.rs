//! Secrets: virtual and API keys are stored only as SHA-256 hashes; provider keys and the checkpoint key only sealed.

pub mod api_key;
pub mod checkpoint_key;
pub mod key_kind;
pub mod seal;
pub mod token;
pub mod totp;
pub mod virtual_key;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a secret in hex: the only form in which a key is stored or looked up.
pub fn sha256_hex(secret: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(secret))
}
