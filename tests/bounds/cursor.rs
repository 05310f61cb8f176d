//! Cursors made by hand, as docs/reference/management.md says that any caller can: they name a position in a list of
//! the caller's own, and so start deep in it without the pages before.

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};

/// The version byte of cursors.
const VERSION: u8 = 1;
const SEAL_BYTES: usize = 12;

/// The cursor of `position` in the list that these words name: account, mode, the list's name, and name and value of
/// each parameter of the path and of each filter.
pub fn forged(words: &[&str], position: &str) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.len().to_be_bytes());
        hash.update(word);
    }
    hash.update(position);
    let mut bytes = vec![VERSION];
    bytes.extend(&hash.finalize()[..SEAL_BYTES]);
    bytes.extend(position.as_bytes());
    BASE64URL_NOPAD.encode(&bytes)
}
