//! Cache of decrypted provider keys by their sealed form, so a replaced key is never used again.

use crypto::seal::{Keyring, SealError, SealedFor};
use quick_cache::sync::Cache;
use secrecy::SecretString;
use std::sync::Arc;
use store::sanity::{StoreRecord, WrongMasterKey};

/// Maximum number of decrypted keys in the cache. They are zeroized on removal. Decrypting one takes less than 1 µs.
const OPENED_MAX: usize = 2_000;

/// Decrypts provider keys and caches the result.
pub struct ProviderKeys {
    keyring: Keyring,
    opened: Cache<String, Arc<OpenedKey>>,
}

/// A decrypted key, and the agent that it belongs to.
struct OpenedKey {
    owner: [String; 4],
    key: Arc<SecretString>,
}

/// Returns the record to which the encryption of a key is bound.
const fn words<'a>(owner: &SealedFor<'a>) -> [&'a str; 4] {
    [owner.account, owner.agent, owner.provider, owner.key_id]
}

impl ProviderKeys {
    /// Creates an empty cache of keys that `keyring` decrypts.
    pub fn new(keyring: Keyring) -> Self {
        Self {
            keyring,
            opened: Cache::new(OPENED_MAX),
        }
    }

    /// Decrypts `sealed`, which must have been sealed for `owner`.
    ///
    /// # Errors
    /// [`SealError`]: sealed for another owner or with another master key.
    pub fn open(&self, owner: &SealedFor<'_>, sealed: &str) -> Result<Arc<SecretString>, SealError> {
        let owner_words = words(owner);
        // All fields of the owner are compared, so that a key decrypted for one provider is not found for another.
        if let Some(opened) = self.opened.get(sealed)
            && opened.owner == owner_words
        {
            return Ok(Arc::clone(&opened.key));
        }
        let key = Arc::new(self.keyring.open(owner, sealed)?);
        let opened = OpenedKey {
            owner: owner_words.map(str::to_owned),
            key: Arc::clone(&key),
        };
        self.opened.insert(sealed.to_owned(), Arc::new(opened));
        Ok(key)
    }

    /// Checks that these master keys belong to the store with this record.
    ///
    /// # Errors
    /// [`WrongMasterKey`]
    pub fn check(&self, record: &StoreRecord) -> Result<(), WrongMasterKey> {
        record.check_master_key(&self.keyring)
    }

    /// Returns the number of decrypted keys in the cache.
    pub fn len(&self) -> usize {
        self.opened.len()
    }

    /// Encrypts a provider key as the admin server does.
    #[cfg(test)]
    pub fn seal(&self, owner: &SealedFor<'_>, secret: &str) -> String {
        self.keyring.seal(owner, &SecretString::from(secret)).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    const MASTER_KEY: &str = "ERERERERERERERERERERERERERERERERERERERERERE=";

    #[test]
    fn a_key_is_cached_by_its_sealed_form() {
        let keyring = Keyring::new([MASTER_KEY].into_iter()).unwrap();
        let keys = ProviderKeys::new(keyring);
        let owner = SealedFor {
            account: "acct_1",
            agent: "bot",
            provider: "openai",
            key_id: "pk_1",
        };
        let (one, other) = (keys.seal(&owner, "sk-1"), keys.seal(&owner, "sk-2"));
        let opened = keys.open(&owner, &one).unwrap();
        assert_eq!(opened.expose_secret(), "sk-1");
        assert!(Arc::ptr_eq(&opened, &keys.open(&owner, &one).unwrap()));
        assert_eq!(keys.open(&owner, &other).unwrap().expose_secret(), "sk-2");
        assert_eq!(keys.len(), 2);
        let another = SealedFor {
            agent: "eve",
            ..owner
        };
        assert!(keys.open(&another, &one).is_err());
        let elsewhere = SealedFor {
            provider: "azure",
            ..owner
        };
        assert!(
            keys.open(&elsewhere, &one).is_err(),
            "also after it was opened for openai"
        );
    }
}
