//! Virtual keys: `vk_live_` and 64 hex digits, of 24 random bytes and an 8-byte checksum.
//!
//! The checksum is an HMAC under a secret that the store has held since `store init`. So an edge rejects a key that was
//! never issued here without accessing the store, and a flood of invented keys costs the store nothing. The checksum
//! proves nothing else: only the store decides whether a key is active.

use data_encoding::HEXLOWER;
use entropy::{NoEntropy, random_bytes};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Prefix of every virtual key.
pub const PREFIX: &str = "vk_live_";
/// Number of characters of a key that lists show, including the prefix.
pub const SHOWN: usize = PREFIX.len() + 4;
const RANDOM_BYTES: usize = 24;
const CHECK_BYTES: usize = 8;
const HEX_DIGITS: usize = 2 * (RANDOM_BYTES + CHECK_BYTES);

/// The store's secret for the checksum of virtual keys.
#[derive(Clone)]
pub struct CheckSecret(SecretString);

impl std::fmt::Debug for CheckSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CheckSecret(…)")
    }
}

impl CheckSecret {
    /// Parses the stored form.
    pub fn from_stored(text: String) -> Self {
        Self(text.into())
    }

    /// Creates a secret in its stored form.
    pub fn mint() -> Result<String, NoEntropy> {
        Ok(hex::encode(random_bytes::<32>()?))
    }

    fn check(&self, random: &[u8]) -> Option<[u8; CHECK_BYTES]> {
        self.mac(&[b"tollgate virtual key", random])
            .first_chunk()
            .copied()
    }

    /// Derives 128 bits from `words`, for ids by which a record is found again. Only this store can derive them, and
    /// they do not reveal the words. Only the last word may contain a line break.
    pub fn derive(&self, words: &[&str]) -> u128 {
        let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mac = self.mac(&[&[&b"tollgate"[..]], &bytes[..]].concat());
        mac.first_chunk().copied().map_or(0, u128::from_be_bytes)
    }

    /// Returns the HMAC of these parts, joined by line breaks.
    fn mac(&self, parts: &[&[u8]]) -> Vec<u8> {
        let key = self.0.expose_secret().as_bytes();
        let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else {
            return Vec::new(); // HMAC accepts keys of any length
        };
        mac.update(&parts.join(&b'\n'));
        mac.finalize().into_bytes().to_vec()
    }

    /// Returns whether `key` was issued under this secret.
    pub fn issued(&self, key: &WellFormed<'_>) -> bool {
        let mut bytes = [0_u8; RANDOM_BYTES + CHECK_BYTES];
        if hex::decode_to_slice(&key.0[PREFIX.len()..], &mut bytes).is_err() {
            return false;
        }
        let (random, check) = bytes.split_at(RANDOM_BYTES);
        self.check(random)
            .is_some_and(|expected| expected.ct_eq(check).into())
    }
}

/// A text in the form of a virtual key. Not verified.
#[derive(Clone, Copy)]
pub struct WellFormed<'a>(&'a [u8]);

impl<'a> WellFormed<'a> {
    /// Accepts `vk_live_` and 64 lower-case hex digits, nothing else.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX.as_bytes())?;
        let hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        // Without an early end, so that many digits are compared at once.
        let fits = digits.len() == HEX_DIGITS && digits.iter().fold(true, |fits, byte| fits & hex(byte));
        fits.then_some(Self(text))
    }

    /// Returns the SHA-256 of the key.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }

    /// Returns the hash under which the key is stored, in hex.
    pub fn hash(&self) -> String {
        HEXLOWER.encode(&self.digest())
    }

    /// Returns the characters that lists show.
    pub fn shown(&self) -> &'a str {
        std::str::from_utf8(&self.0[..SHOWN]).unwrap_or_default()
    }
}

/// Creates a virtual key. The caller returns it once and stores only its hash.
pub fn mint(secret: &CheckSecret) -> Result<SecretString, NoEntropy> {
    let random = random_bytes::<RANDOM_BYTES>()?;
    let check = secret.check(&random).unwrap_or_default();
    Ok(format!("{PREFIX}{}{}", hex::encode(random), hex::encode(check)).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256_hex;

    #[test]
    fn issued_keys_are_recognised_and_invented_ones_are_not() {
        let secret = CheckSecret::from_stored(CheckSecret::mint().unwrap());
        let key = mint(&secret).unwrap();
        let key = key.expose_secret();
        let parsed = WellFormed::parse(key.as_bytes()).unwrap();
        assert!(secret.issued(&parsed));
        assert_eq!(parsed.hash(), sha256_hex(key.as_bytes()));
        assert!(parsed.shown().len() == 12 && key.starts_with(parsed.shown()));

        let flipped = if key.ends_with('0') { '1' } else { '0' };
        let forged = format!("{}{flipped}", &key[..key.len() - 1]);
        assert!(!secret.issued(&WellFormed::parse(forged.as_bytes()).unwrap()));
        let other = CheckSecret::from_stored(CheckSecret::mint().unwrap());
        assert!(!other.issued(&parsed));
    }

    #[test]
    fn only_the_exact_form_is_well_formed() {
        let good = format!("vk_live_{}", "0a".repeat(32));
        assert!(WellFormed::parse(good.as_bytes()).is_some());
        for bad in [
            String::new(),
            "vk_live_".into(),
            good.to_uppercase(),
            format!("{good}0"),
            good[..71].to_owned(),
            format!("vk_test_{}", "0a".repeat(32)),
            format!("vk_live_{}", "0A".repeat(32)),
            format!("vk_live_{}", "é".repeat(32)),
            format!(" {}", &good[1..]),
        ] {
            assert!(WellFormed::parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }
}
