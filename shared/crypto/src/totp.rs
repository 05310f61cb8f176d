//! The second factor: time-based one-time passwords (RFC 6238: SHA-1, six digits, 30 seconds, as all apps support) and
//! recovery codes.

use crate::sha256_hex;
use data_encoding::BASE32_NOPAD;
use entropy::{NoEntropy, random_bytes};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha1::Sha1;
use subtle::{Choice, ConstantTimeEq};

/// Duration of a step, in ms.
const STEP_MS: u64 = 30_000;
/// Steps before and after the current one that are accepted, for clock skew.
const SKEW: u64 = 1;
/// Digits of a code.
const DIGITS: usize = 6;
/// Number of possible codes.
const CODES: u32 = 1_000_000;
/// Recovery codes of a user.
pub(crate) const RECOVERY_CODES: usize = 10;
/// Significant characters of a recovery code.
const RECOVERY_CHARS: usize = 16;

/// Creates a secret in base 32, as apps expect it.
pub fn mint() -> Result<SecretString, NoEntropy> {
    Ok(BASE32_NOPAD.encode(&random_bytes::<20>()?).into())
}

/// Returns the step of `code` if it is near `at_ms` and after `last_step`, since each code is valid only once.
pub fn step_of(secret: &SecretString, code: &str, at_ms: u64, last_step: u64) -> Option<u64> {
    let key = BASE32_NOPAD.decode(secret.expose_secret().as_bytes()).ok()?;
    let now = at_ms / STEP_MS;
    let mut found = None;
    for step in now.saturating_sub(SKEW)..=now + SKEW {
        let same: Choice = code_of(&key, step)?.as_bytes().ct_eq(code.as_bytes());
        if bool::from(same) && step > last_step {
            found = Some(step);
        }
    }
    found
}

/// Returns whether `text` has the form of a code; otherwise it may be a recovery code.
pub fn is_code(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn code_of(key: &[u8], step: u64) -> Option<String> {
    let mac = Hmac::<Sha1>::new_from_slice(key).ok()?;
    let hash = mac.chain_update(step.to_be_bytes()).finalize().into_bytes();
    let at = usize::from(hash.last()? & 0x0f);
    let word: [u8; 4] = hash.get(at..at + 4)?.try_into().ok()?;
    let number = (u32::from_be_bytes(word) & 0x7fff_ffff) % CODES;
    Some(format!("{number:0DIGITS$}"))
}

/// Creates recovery codes, in their displayed form.
pub fn mint_recovery() -> Result<Vec<String>, NoEntropy> {
    let code = || {
        let text = BASE32_NOPAD.encode(&random_bytes::<10>()?).to_lowercase();
        Ok([&text[..4], &text[4..8], &text[8..12], &text[12..]].join("-"))
    };
    (0..RECOVERY_CODES).map(|_| code()).collect()
}

/// Returns the hash of a recovery code, in any spelling; `None` if malformed.
pub fn recovery_hash(code: &str) -> Option<String> {
    let typed = code.chars().filter(|c| !matches!(c, '-' | ' '));
    let typed: String = typed
        .take(RECOVERY_CHARS + 1)
        .collect::<String>()
        .to_ascii_lowercase();
    let fits = typed.len() == RECOVERY_CHARS && typed.bytes().all(|byte| byte.is_ascii_alphanumeric());
    fits.then(|| sha256_hex(typed.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the secret of RFC 6238, appendix B.
    fn secret() -> SecretString {
        BASE32_NOPAD.encode(b"12345678901234567890").into()
    }

    #[test]
    fn codes_are_those_of_the_rfc() {
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(
                step_of(&secret(), code, seconds * 1000, 0),
                Some(seconds / 30),
                "{code}"
            );
        }
    }

    #[test]
    fn a_code_stands_for_a_step_to_either_side_and_once() {
        let at = 1_111_111_109_000;
        let step = at / STEP_MS;
        for away in [0, STEP_MS] {
            assert_eq!(step_of(&secret(), "081804", at + away, 0), Some(step));
            assert_eq!(step_of(&secret(), "081804", at - away, 0), Some(step));
        }
        assert_eq!(step_of(&secret(), "081804", at + 3 * STEP_MS, 0), None);
        assert_eq!(step_of(&secret(), "081804", at - 2 * STEP_MS, 0), None);
        assert_eq!(step_of(&secret(), "081804", at, step), None, "used");
        for bad in ["", "81804", "0818040", "081805", "é81804"] {
            assert_eq!(step_of(&secret(), bad, at, 0), None, "{bad}");
        }
        assert!(is_code("081804") && !is_code("abcd-efgh-abcd-efgh") && !is_code("08180"));
    }

    #[test]
    fn recovery_codes_may_be_typed_in_any_way() {
        let codes = mint_recovery().unwrap();
        assert_eq!(codes.len(), RECOVERY_CODES);
        let code = &codes[0];
        let hash = recovery_hash(code).unwrap();
        assert_eq!(
            recovery_hash(&code.to_uppercase().replace('-', " ")),
            Some(hash.clone())
        );
        assert_ne!(recovery_hash(&codes[1]), Some(hash));
        for bad in ["", "abcd", &format!("{code}a"), &"é".repeat(16)] {
            assert_eq!(recovery_hash(bad), None, "{bad}");
        }
        assert_eq!(mint().unwrap().expose_secret().len(), 32);
    }
}
