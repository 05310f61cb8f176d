//! Tokens that authenticate a user: of a session, an invitation or a password reset. A token is 32 random bytes in hex;
//! only its SHA-256 is stored.

use crate::sha256_hex;
use entropy::{NoEntropy, random_bytes};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// Hex digits of a token.
const DIGITS: usize = 64;
/// Context of the derived CSRF token.
const CSRF: &[u8] = b"tollgate csrf token";

/// A secret of 32 random bytes, in hex.
#[derive(Debug, Clone)]
pub struct Token(SecretString);

impl Token {
    /// Creates a token.
    pub fn mint() -> Result<Self, NoEntropy> {
        Ok(Self(hex::encode(random_bytes::<32>()?).into()))
    }

    /// Parses a token; `None` if malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.into()))
    }

    /// Returns the token, to be sent to its owner.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns the hash that is stored.
    pub fn hash(&self) -> String {
        sha256_hex(self.expose().as_bytes())
    }

    /// Returns the CSRF token, with which a page proves that it can read the session's responses. It is derived from
    /// the token but does not reveal it.
    pub fn csrf(&self) -> String {
        let mac = Hmac::<Sha256>::new_from_slice(self.expose().as_bytes());
        // HMAC accepts keys of any length.
        mac.map(|mac| hex::encode(mac.chain_update(CSRF).finalize().into_bytes()))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_read_back_and_hide() {
        let (a, b) = (Token::mint().unwrap(), Token::mint().unwrap());
        assert_ne!(a.expose(), b.expose());
        assert_eq!(Token::parse(a.expose()).unwrap().hash(), a.hash());
        assert!(!format!("{a:?}").contains(a.expose()));
        for bad in [
            "",
            "0a",
            &a.expose()[1..],
            &a.expose().to_uppercase().replace('0', "A"),
        ] {
            assert!(Token::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn derived_values_differ_from_token_to_token() {
        let (a, b) = (Token::mint().unwrap(), Token::mint().unwrap());
        assert_eq!(a.csrf().len(), DIGITS);
        assert_eq!(a.csrf(), Token::parse(a.expose()).unwrap().csrf());
        assert_ne!(a.csrf(), b.csrf());
        assert!(a.csrf() != a.hash() && a.csrf() != a.expose());
    }
}
