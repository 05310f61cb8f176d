//! Sealed secrets, such as provider keys and those of webhooks: AES-256-GCM under a master key, bound to the record they
//! belong to.
//!
//! A sealed text is `v1.<master key id>.<base64 of nonce and ciphertext>`. The associated data names the record, such as
//! account, agent, provider and key id, so a sealed secret that is copied to another record does not open there.

use crate::domain::mode::Mode;
use crate::entropy::{NoEntropy, random_bytes};
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const VERSION: &str = "v1";
const NONCE_BYTES: usize = 12;

/// Why a master key list cannot be used. The text never contains a key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// No key at all.
    #[error("secrets.master_key or secrets.master_key_file must hold at least one key")]
    None,
    /// A line that is not 32 bytes of base64.
    #[error("master key number {0} is not 32 bytes in base64")]
    BadKey(usize),
}

/// Why a secret could not be sealed or opened. The text never contains it.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Sealed under a master key that is not in the list, in an unknown form, or changed.
    #[error("the sealed secret does not open with the configured master keys")]
    DoesNotOpen,
    /// The cipher refused.
    #[error("the secret could not be sealed")]
    DoesNotSeal,
    /// No randomness for the nonce.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
}

/// A record that a sealed secret belongs to.
pub trait SealOwner {
    /// A text that names exactly this record.
    fn associated_data(&self) -> String;
}

/// What the sealed secret of a webhook belongs to.
#[derive(Debug, Clone, Copy)]
pub struct WebhookSecretOf<'a> {
    /// The account.
    pub account: &'a str,
    /// The mode.
    pub mode: Mode,
    /// The webhook's id.
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

/// What a sealed provider key belongs to.
#[derive(Debug, Clone, Copy)]
pub struct SealedFor<'a> {
    /// The account.
    pub account: &'a str,
    /// The agent.
    pub agent: &'a str,
    /// The upstream provider.
    pub provider: &'a str,
    /// The provider key's id.
    pub key_id: &'a str,
}

impl SealOwner for SealedFor<'_> {
    /// None of the parts can contain a newline, so the text names exactly one record.
    fn associated_data(&self) -> String {
        format!(
            "tollgate provider key\n{}\n{}\n{}\n{}",
            self.account, self.agent, self.provider, self.key_id
        )
    }
}

/// What the sealed secret of a user's second factor belongs to.
#[derive(Debug, Clone, Copy)]
pub struct TotpSecretOf<'a> {
    /// The account.
    pub account: &'a str,
    /// The user's id.
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

/// The master keys, newest first: the first one seals, all of them open.
pub struct Sealer {
    keys: Vec<MasterKey>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<&str> = self.keys.iter().map(|key| key.id.as_str()).collect();
        f.debug_struct("Sealer").field("key_ids", &ids).finish()
    }
}

impl Sealer {
    /// Reads the master keys, each 32 bytes in base64, newest first; empty entries are skipped.
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
    /// [`SealError`] when the cipher or the random source fails.
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

    /// Opens a sealed secret.
    ///
    /// # Errors
    /// [`SealError::DoesNotOpen`] whatever the cause.
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

    /// Whether a sealed secret is under the newest master key already, so that a rotation can skip it.
    #[must_use]
    pub fn is_current(&self, sealed: &str) -> bool {
        let id = sealed.split('.').nth(1);
        self.keys.first().is_some_and(|key| Some(key.id.as_str()) == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: SealedFor<'static> = SealedFor {
        account: "acct_1",
        agent: "bot",
        provider: "openai",
        key_id: "pk_1",
    };

    fn sealer(keys: &[u8]) -> Sealer {
        let texts: Vec<String> = keys.iter().map(|byte| STANDARD.encode([*byte; 32])).collect();
        Sealer::new(texts.iter().map(String::as_str)).unwrap()
    }

    #[test]
    fn a_key_opens_only_for_its_own_record() {
        let sealer = sealer(&[1]);
        let sealed = sealer.seal(&OWNER, &"sk-secret".into()).unwrap();
        assert!(!sealed.contains("sk-secret"));
        assert_eq!(sealer.open(&OWNER, &sealed).unwrap().expose_secret(), "sk-secret");
        for other in [
            SealedFor {
                account: "acct_2",
                ..OWNER
            },
            SealedFor {
                agent: "bot2",
                ..OWNER
            },
            SealedFor {
                provider: "other",
                ..OWNER
            },
            SealedFor {
                key_id: "pk_2",
                ..OWNER
            },
        ] {
            assert!(sealer.open(&other, &sealed).is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_webhooks_secret_opens_only_for_its_webhook() {
        let sealer = sealer(&[1]);
        let owner = WebhookSecretOf {
            account: "acct_1",
            mode: Mode::Live,
            webhook: "wh_1",
        };
        let sealed = sealer.seal(&owner, &"a secret of some length".into()).unwrap();
        assert!(sealer.open(&owner, &sealed).is_ok());
        let mode = Mode::Test;
        assert!(sealer.open(&WebhookSecretOf { mode, ..owner }, &sealed).is_err());
        let webhook = "wh_2";
        assert!(
            sealer
                .open(&WebhookSecretOf { webhook, ..owner }, &sealed)
                .is_err()
        );
        assert!(sealer.open(&OWNER, &sealed).is_err());
    }

    #[test]
    fn a_second_factor_opens_only_for_its_user() {
        let sealer = sealer(&[1]);
        let owner = TotpSecretOf {
            account: "acct_1",
            user: "usr_1",
        };
        let sealed = sealer.seal(&owner, &"JBSWY3DPEHPK3PXP".into()).unwrap();
        assert!(sealer.open(&owner, &sealed).is_ok());
        let user = "usr_2";
        assert!(sealer.open(&TotpSecretOf { user, ..owner }, &sealed).is_err());
        let account = "acct_2";
        assert!(sealer.open(&TotpSecretOf { account, ..owner }, &sealed).is_err());
    }

    #[test]
    fn any_change_to_the_sealed_text_is_noticed() {
        let sealer = sealer(&[1]);
        let sealed = sealer.seal(&OWNER, &"sk-secret".into()).unwrap();
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(sealer.open(&OWNER, &changed).is_err(), "byte {at}");
            assert!(sealer.open(&OWNER, &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn rotation_opens_old_keys_and_seals_with_the_new_one() {
        let sealed = sealer(&[1]).seal(&OWNER, &"sk-secret".into()).unwrap();
        let rotated = sealer(&[2, 1]);
        assert!(rotated.open(&OWNER, &sealed).is_ok() && !rotated.is_current(&sealed));
        let renewed = rotated.seal(&OWNER, &"sk-secret".into()).unwrap();
        assert!(rotated.is_current(&renewed) && sealer(&[2]).open(&OWNER, &renewed).is_ok());
        assert!(
            sealer(&[2]).open(&OWNER, &sealed).is_err(),
            "the old master key is gone"
        );
    }

    #[test]
    fn bad_master_keys_are_named_by_position_only() {
        let good = STANDARD.encode([7_u8; 32]);
        let error = Sealer::new([good.as_str(), "c2hvcnQ="].into_iter()).unwrap_err();
        assert_eq!(error.to_string(), "master key number 2 is not 32 bytes in base64");
        assert!(Sealer::new(["", " "].into_iter()).is_err());
        assert!(!format!("{:?}", sealer(&[1])).contains(&STANDARD.encode([1_u8; 32])));
    }
}
