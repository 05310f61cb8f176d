//! Sealed secrets, such as provider keys and webhook secrets: AES-256-GCM under a master key, bound to their record.
//!
//! A sealed text is `v1.<master key id>.<base64 of nonce and ciphertext>`. The associated data names the record, such
//! as account, agent, provider and key id, so a sealed secret that is copied to another record does not open there.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::mode::Mode;
use entropy::{NoEntropy, random_bytes};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const VERSION: &str = "v1";
const NONCE_BYTES: usize = 12;

/// Why a master key list cannot be used. The text never contains a key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// No key in the list.
    #[error("secrets.master_key or secrets.master_key_file must hold at least one key")]
    None,
    /// An entry that is not 32 bytes of base64.
    #[error("master key number {0} is not 32 bytes in base64 (44 characters)")]
    BadKey(usize),
}

/// Why a secret could not be sealed or opened. The text never contains it.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Sealed under a master key that is not in the list, in an unknown form, or altered.
    #[error("the sealed secret does not open with the configured master keys")]
    DoesNotOpen,
    /// The cipher refused.
    #[error("the secret could not be sealed")]
    DoesNotSeal,
    /// No randomness for the nonce.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
}

/// The record that a sealed secret belongs to.
pub trait SealOwner {
    /// Returns a text that identifies the record.
    fn associated_data(&self) -> String;
}

/// Binds a sealed secret to its webhook: it opens for no other.
#[derive(Debug, Clone, Copy)]
pub struct WebhookSecretOf<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// `live` or `test`.
    pub mode: Mode,
    /// Webhook id, `wh_…`.
    pub webhook: &'a str,
}

impl SealOwner for WebhookSecretOf<'_> {
    fn associated_data(&self) -> String {
        format!(
            "tollgate webhook\n{}\n{}\n{}",
            self.account, self.mode, self.webhook
        )
    }
}

/// Owner of a sealed provider key.
#[derive(Debug, Clone, Copy)]
pub struct SealedFor<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// Agent id.
    pub agent: &'a str,
    /// Name of the provider.
    pub provider: &'a str,
    /// Provider key id, `pk_…`.
    pub key_id: &'a str,
}

impl SealOwner for SealedFor<'_> {
    /// No part can contain a newline, so the text is unambiguous.
    fn associated_data(&self) -> String {
        format!(
            "tollgate provider key\n{}\n{}\n{}\n{}",
            self.account, self.agent, self.provider, self.key_id
        )
    }
}

/// Owner of the sealed secret of a user's second factor.
#[derive(Debug, Clone, Copy)]
pub struct TotpSecretOf<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// User id, `usr_…`.
    pub user: &'a str,
}

impl SealOwner for TotpSecretOf<'_> {
    fn associated_data(&self) -> String {
        format!("tollgate second factor\n{}\n{}", self.account, self.user)
    }
}

struct MasterKey {
    id: String,
    cipher: Aes256Gcm,
}

/// The master keys, newest first. The first one seals, and all of them open.
pub struct Keyring {
    keys: Vec<MasterKey>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<&str> = self.keys.iter().map(|key| key.id.as_str()).collect();
        f.debug_struct("Keyring").field("key_ids", &ids).finish()
    }
}

impl Keyring {
    /// Parses master keys, each 32 bytes in base64, newest first; skips empty entries.
    ///
    /// # Errors
    /// [`MasterKeyError`] names the position of a bad key, never its text.
    pub fn new<'a>(keys: impl Iterator<Item = &'a str>) -> Result<Self, MasterKeyError> {
        let mut list = Vec::new();
        for (at, text) in keys.map(str::trim).filter(|text| !text.is_empty()).enumerate() {
            let bytes = Zeroizing::new(
                STANDARD
                    .decode(text)
                    .map_err(|_| MasterKeyError::BadKey(at + 1))?,
            );
            let cipher = Aes256Gcm::new_from_slice(&bytes).map_err(|_| MasterKeyError::BadKey(at + 1))?;
            let id = hex::encode(&Sha256::digest(&*bytes)[..4]);
            list.push(MasterKey { id, cipher });
        }
        if list.is_empty() {
            Err(MasterKeyError::None)
        } else {
            Ok(Self { keys: list })
        }
    }

    /// Seals a secret under the newest master key.
    ///
    /// # Errors
    /// [`SealError`] if the cipher or the random source fails.
    pub fn seal(&self, owner: &impl SealOwner, secret: &SecretString) -> Result<String, SealError> {
        let key = self.keys.first().ok_or(SealError::DoesNotSeal)?;
        let nonce = random_bytes::<NONCE_BYTES>()?;
        let owner = owner.associated_data();
        let payload = Payload {
            msg: secret.expose_secret().as_bytes(),
            aad: owner.as_bytes(),
        };
        let sealed = key
            .cipher
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| SealError::DoesNotSeal)?;
        Ok(format!(
            "{VERSION}.{}.{}",
            key.id,
            STANDARD.encode([&nonce[..], &sealed].concat())
        ))
    }

    /// Returns whether the text was sealed under one of these master keys, judged by the key id in it. True for a text
    /// without such an id, since it was not sealed under another key.
    pub fn has_key_of(&self, sealed: &str) -> bool {
        let mut parts = sealed.splitn(3, '.');
        let (Some(VERSION), Some(id), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
            return true;
        };
        self.keys.iter().any(|key| key.id == id)
    }

    /// Returns whether the sealed text is of this secret, which is compared in constant time.
    pub fn is_of(&self, owner: &impl SealOwner, sealed: &str, secret: &SecretString) -> bool {
        let same = |kept: &SecretString| {
            let kept = kept.expose_secret().as_bytes();
            bool::from(kept.ct_eq(secret.expose_secret().as_bytes()))
        };
        self.open(owner, sealed).is_ok_and(|kept| same(&kept))
    }

    /// Opens a sealed secret.
    ///
    /// # Errors
    /// [`SealError::DoesNotOpen`], whatever the cause.
    pub fn open(&self, owner: &impl SealOwner, sealed: &str) -> Result<SecretString, SealError> {
        let mut parts = sealed.splitn(3, '.');
        let (Some(VERSION), Some(id), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(SealError::DoesNotOpen);
        };
        let key = self
            .keys
            .iter()
            .find(|key| key.id == id)
            .ok_or(SealError::DoesNotOpen)?;
        let bytes = STANDARD.decode(text).map_err(|_| SealError::DoesNotOpen)?;
        let (nonce, sealed) = bytes
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(SealError::DoesNotOpen)?;
        let owner = owner.associated_data();
        let payload = Payload {
            msg: sealed,
            aad: owner.as_bytes(),
        };
        let plain = key
            .cipher
            .decrypt(&Nonce::from(*nonce), payload)
            .map_err(|_| SealError::DoesNotOpen)?;
        String::from_utf8(plain)
            .map(SecretString::from)
            .map_err(|_| SealError::DoesNotOpen)
    }

    /// Returns whether a secret is already sealed under the newest master key.
    pub fn is_current(&self, sealed: &str) -> bool {
        let id = sealed.split('.').nth(1);
        self.keys.first().is_some_and(|key| Some(key.id.as_str()) == id)
    }
}

#[cfg(test)]
mod tests;
