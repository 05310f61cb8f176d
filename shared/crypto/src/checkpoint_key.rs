//! The key that signs checkpoints of audit chains: Ed25519, one per store, its seed sealed under the master key. Notes
//! and public keys have the forms of C2SP's signed-note, so that other tools can verify them.

use super::seal::{Keyring, SealError, SealOwner};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::checkpoint::{Checkpoint, Note};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use entropy::random_bytes;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Owner of the sealed seed: the store's record.
struct SeedOwner;

impl SealOwner for SeedOwner {
    fn associated_data(&self) -> String {
        "tollgate checkpoint key".to_owned()
    }
}

/// Ed25519 in C2SP's list of signature types.
const ED25519: u8 = 1;
/// Bytes of the key id in a signature.
const ID_BYTES: usize = 4;

/// Ed25519 key that signs checkpoints. The store has it sealed.
pub struct CheckpointKey(SigningKey);

/// Ed25519 key that verifies checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// Why a note is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadNote {
    /// Malformed.
    #[error("it is no signed note of a checkpoint")]
    Form,
    /// No signature by this key under this name.
    #[error("it bears no signature of the expected key")]
    Unsigned,
    /// The signature does not match text and key.
    #[error("its signature does not fit")]
    Forged,
    /// The note is about another chain.
    #[error("it is about another chain")]
    Origin,
}

impl std::fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CheckpointKey")
            .field(&self.public().text())
            .finish()
    }
}

impl CheckpointKey {
    /// Creates a random key, sealed.
    pub fn mint(keyring: &Keyring) -> Result<String, SealError> {
        let seed = Zeroizing::new(random_bytes::<32>()?);
        keyring.seal(&SeedOwner, &SecretString::from(hex::encode(*seed)))
    }

    /// Decrypts the text that [`mint`](Self::mint) returned.
    pub fn open(keyring: &Keyring, sealed: &str) -> Result<Self, SealError> {
        let text = keyring.open(&SeedOwner, sealed)?;
        let mut seed = Zeroizing::new([0_u8; 32]);
        hex::decode_to_slice(text.expose_secret(), &mut *seed).map_err(|_| SealError::DoesNotOpen)?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// Seals the same key under the newest master key.
    pub fn seal_again(keyring: &Keyring, sealed: &str) -> Result<String, SealError> {
        keyring.seal(&SeedOwner, &keyring.open(&SeedOwner, sealed)?)
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Returns the signed note of a checkpoint, signed under the chain's name.
    pub fn sign(&self, checkpoint: &Checkpoint) -> String {
        let (text, name) = (checkpoint.text(), checkpoint.origin.as_str());
        let signature = self.0.sign(text.as_bytes()).to_bytes();
        let signed = [&self.public().id(name)[..], &signature].concat();
        Note::compose(&text, name, &signed)
    }
}

impl PublicKey {
    /// Parses a public key: 32 bytes in base64, or `<name>+<key id>+<base64>` as in C2SP.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 32] = match text.trim().splitn(3, '+').collect::<Vec<_>>().as_slice() {
            // Base64 may contain a plus, but not a name with a slash before it and eight hex digits after it.
            [name, id, key] if id.len() == 2 * ID_BYTES && STANDARD.decode(text.trim()).is_err() => {
                let key = STANDARD.decode(key).ok()?;
                let key = key.strip_prefix(&[ED25519])?.try_into().ok()?;
                let public = Self(VerifyingKey::from_bytes(&key).ok()?);
                return (hex::encode(public.id(name)) == *id).then_some(public);
            }
            _ => STANDARD.decode(text.trim()).ok()?.try_into().ok()?,
        };
        VerifyingKey::from_bytes(&bytes).ok().map(Self)
    }

    /// Returns the 32 bytes in base64.
    pub fn text(&self) -> String {
        STANDARD.encode(self.0.as_bytes())
    }

    /// `<name>+<key id>+<base64>`, as other tools for signed notes expect it.
    pub fn verifier(&self, name: &str) -> String {
        let typed = [&[ED25519], &self.0.as_bytes()[..]].concat();
        format!("{name}+{}+{}", hex::encode(self.id(name)), STANDARD.encode(typed))
    }

    /// Returns the id of the key under this name.
    fn id(&self, name: &str) -> [u8; ID_BYTES] {
        let mut hash = Sha256::new();
        hash.update(name.as_bytes());
        hash.update([b'\n', ED25519]);
        hash.update(self.0.as_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// Verifies a note about the chain `origin` and returns its checkpoint.
    pub fn verify(&self, note: &str, origin: &str) -> Result<Checkpoint, BadNote> {
        let note = Note::parse(note).ok_or(BadNote::Form)?;
        if note.checkpoint.origin != origin {
            return Err(BadNote::Origin);
        }
        let id = self.id(origin);
        let mut ours = note
            .signatures
            .iter()
            .filter(|(name, signed)| *name == origin && signed.starts_with(&id));
        let (_, signed) = ours.next().ok_or(BadNote::Unsigned)?;
        let signature = Signature::from_slice(&signed[ID_BYTES..]).map_err(|_| BadNote::Forged)?;
        let checked = self.0.verify_strict(note.text.as_bytes(), &signature);
        checked.map(|()| note.checkpoint).map_err(|_| BadNote::Forged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(byte: u8) -> Keyring {
        Keyring::new(std::iter::once(STANDARD.encode([byte; 32]).as_str())).unwrap()
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            origin: "tollgate/acct_1/live".to_owned(),
            size: 50,
            hash: [7; 32],
            later: None,
        }
    }

    #[test]
    fn a_note_is_proven_by_its_key_and_by_no_other() {
        let keyring = keyring(1);
        let sealed = CheckpointKey::mint(&keyring).unwrap();
        let key = CheckpointKey::open(&keyring, &sealed).unwrap();
        let note = key.sign(&checkpoint());
        let origin = checkpoint().origin;
        assert_eq!(key.public().verify(&note, &origin), Ok(checkpoint()));
        let other = CheckpointKey::open(&keyring, &CheckpointKey::mint(&keyring).unwrap()).unwrap();
        assert_eq!(other.public().verify(&note, &origin), Err(BadNote::Unsigned));
        assert_eq!(
            key.public().verify(&note, "tollgate/acct_1/test"),
            Err(BadNote::Origin)
        );
        assert_eq!(key.public().verify("x", &origin), Err(BadNote::Form));
        let forged = note.replacen("\n50\n", "\n49\n", 1);
        assert_eq!(key.public().verify(&forged, &origin), Err(BadNote::Forged));
        let both = format!(
            "{}{}",
            note,
            other.sign(&checkpoint()).split_once("\n\n").unwrap().1
        );
        assert_eq!(
            key.public().verify(&both, &origin),
            Ok(checkpoint()),
            "others may sign too"
        );
    }

    #[test]
    fn every_changed_character_of_a_note_is_noticed() {
        let key = CheckpointKey(SigningKey::from_bytes(&[9; 32]));
        let note = key.sign(&checkpoint());
        for (at, old) in note.char_indices() {
            let new = if old == 'A' { 'B' } else { 'A' };
            let mut changed = note.clone();
            changed.replace_range(at..at + old.len_utf8(), &new.to_string());
            assert!(
                key.public().verify(&changed, &checkpoint().origin).is_err(),
                "{changed}"
            );
        }
    }

    #[test]
    fn public_keys_are_read_in_both_forms() {
        for seed in 0..64 {
            let public = CheckpointKey(SigningKey::from_bytes(&[seed; 32])).public();
            assert_eq!(
                PublicKey::parse(&public.text()),
                Some(public),
                "{}",
                public.text()
            );
            let verifier = public.verifier("tollgate/acct_1/live");
            assert_eq!(PublicKey::parse(&verifier), Some(public), "{verifier}");
            assert_eq!(PublicKey::parse(&verifier.replacen("acct_1", "acct_2", 1)), None);
        }
        for bad in ["", "x", "AAAA", "a+b+c"] {
            assert_eq!(PublicKey::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_key_opens_only_with_its_master_key_and_is_never_shown() {
        let sealed = CheckpointKey::mint(&keyring(1)).unwrap();
        assert!(CheckpointKey::open(&keyring(2), &sealed).is_err());
        let key = CheckpointKey::open(&keyring(1), &sealed).unwrap();
        assert!(!format!("{key:?}").contains(&hex::encode(key.0.to_bytes())));
        let both = [STANDARD.encode([2; 32]), STANDARD.encode([1; 32])];
        let both = Keyring::new(both.iter().map(String::as_str)).unwrap();
        let again = CheckpointKey::seal_again(&both, &sealed).unwrap();
        let opened = CheckpointKey::open(&keyring(2), &again).unwrap();
        assert_eq!(opened.public(), key.public());
    }
}
