//! Hash chains of entries that anyone can verify offline (decision D25): each entry contains the hash of the previous
//! one, and its own hash is `hex(SHA-256(previous || "\n" || JCS(entry)))`, where JCS is RFC 8785.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Hash that the first entry has in place of a previous one.
pub const GENESIS: &str = "genesis";

/// Returns the hash of `entry`, which follows the entry with the hash `previous`. `None` if it has no canonical form: a
/// number exceeds the range of doubles, or a map has keys that are not strings.
pub fn entry_hash(previous: &str, entry: &impl Serialize) -> Option<String> {
    Some(hex::encode(hash_of(previous, &canonical(entry)?)))
}

/// Like [`entry_hash`], for an entry in canonical form.
pub fn hash_of(previous: &str, canonical: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(previous.as_bytes());
    hash.update(b"\n");
    hash.update(canonical);
    hash.finalize().into()
}

/// Returns the canonical form (RFC 8785) of a JSON value.
pub fn canonical(value: &impl Serialize) -> Option<Vec<u8>> {
    serde_json_canonicalizer::to_vec(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_construction_is_the_documented_one() {
        let entry = json!({ "b": 1.5, "a": "é\n", "previous_entry_hash": "genesis" });
        let by_hand = "genesis\n{\"a\":\"é\\n\",\"b\":1.5,\"previous_entry_hash\":\"genesis\"}";
        assert_eq!(
            entry_hash(GENESIS, &entry),
            Some(hex::encode(Sha256::digest(by_hand)))
        );
        assert_ne!(entry_hash("other", &entry), entry_hash(GENESIS, &entry));
    }
}
