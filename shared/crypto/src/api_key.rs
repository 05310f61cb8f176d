//! Management API keys: their forms (decision D8). Only the hash is stored.

use domain::mode::Mode;
use entropy::{NoEntropy, random_bytes};
use secrecy::SecretString;

/// The two families of prefixes; the operator picks one at issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `svc_live_…`, `svc_test_…`
    Svc,
    /// `sk_service_live_…`, `sk_service_test_…`
    SkService,
}

const HEX_DIGITS: usize = 64;

impl Family {
    /// Returns the prefix of its keys.
    pub const fn prefix(self, mode: Mode) -> &'static str {
        match (self, mode) {
            (Self::Svc, Mode::Live) => "svc_live_",
            (Self::Svc, Mode::Test) => "svc_test_",
            (Self::SkService, Mode::Live) => "sk_service_live_",
            (Self::SkService, Mode::Test) => "sk_service_test_",
        }
    }

    /// Creates a key. The caller returns it once and stores only its hash.
    pub fn mint(self, mode: Mode) -> Result<SecretString, NoEntropy> {
        Ok(format!("{}{}", self.prefix(mode), hex::encode(random_bytes::<32>()?)).into())
    }
}

/// Returns whether `text` has the form of an API key; others are refused without a store access.
pub fn is_well_formed(text: &str) -> bool {
    let families = [Family::Svc, Family::SkService];
    let prefixes = families
        .iter()
        .flat_map(|family| [Mode::Live, Mode::Test].map(|mode| family.prefix(mode)));
    let digits = prefixes.filter_map(|prefix| text.strip_prefix(prefix)).next();
    digits.is_some_and(|digits| {
        digits.len() == HEX_DIGITS && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    #[test]
    fn minted_keys_are_well_formed() {
        for family in [Family::Svc, Family::SkService] {
            for mode in [Mode::Live, Mode::Test] {
                let key = family.mint(mode).unwrap();
                assert!(is_well_formed(key.expose_secret()));
                assert!(!is_well_formed(&key.expose_secret()[1..]));
            }
        }
        assert!(!is_well_formed("svc_live_"));
        assert!(!is_well_formed(&format!("vk_live_{}", "0".repeat(64))));
    }
}
